-- Whether nobody outside learns of the event, by the word of the program that wrote it: an older one, which does not know its name, passes over it
-- where it publishes. Of what was written before, nobody said so.
ALTER TABLE events ADD COLUMN private boolean NOT NULL DEFAULT false;
