"""The camera worker process: it reads cameras and makes segments, clips and thumbnails. It opens no database."""
