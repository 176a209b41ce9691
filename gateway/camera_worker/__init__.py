"""The camera worker process: ingest, segments, clips, thumbnails. It never sees the database."""
