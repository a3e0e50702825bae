-- The days on which periods begin after anchor_day, [{"from": instant, "day": number}, ...].
ALTER TABLE organizations ADD COLUMN anchors jsonb NOT NULL DEFAULT '[]';
