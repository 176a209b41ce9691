"""The legacy family `/api/v1`: keys of programs instead of sessions, 401 and 403, errors as `{error}`."""
