-- Which kinds of mail about the account a member goes without; empty: they get all. It goes with the member.
ALTER TABLE members ADD COLUMN without_mails text[] NOT NULL DEFAULT '{}';
