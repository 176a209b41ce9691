"""What technicians ask of the site's lines: scans for units, and frames in words."""
