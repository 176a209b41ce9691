-- Whose right a link to evidence has: an account of the site, one of central, or a person at the machine itself.
ALTER TABLE evidence_link ADD COLUMN maker TEXT NOT NULL DEFAULT 'site';
