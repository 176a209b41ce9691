"""The client of central: connections, sign-in, lists and answers."""
