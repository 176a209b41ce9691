"""The legacy family `/api/v1`: API keys instead of sessions, 401 and 403 for refusals, errors as `{error}`."""
