"""What is wrong at the site, what it means for drivers, and what to do: one list, shown by everything."""
