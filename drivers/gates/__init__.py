"""What every gate driver shares."""
