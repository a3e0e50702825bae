-- A delivery goes to a webhook, or by mail to a member.
ALTER TABLE deliveries ADD COLUMN member text NOT NULL DEFAULT '';
