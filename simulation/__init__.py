"""Tools to try the product with: far ends, the demo site, and the site on virtual time. The product imports none."""
