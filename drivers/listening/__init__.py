"""Limits that every listener of the product shares: places for connections, deadlines, and who is closed for whom.

Belongs to the event loop. `places` needs no library; `http` serves aiohttp's applications behind it.
"""
