"""Video sources over WebRTC (WHEP)."""
