"""The site's problems, their consequences for drivers, and the steps to take: one list for every display."""
