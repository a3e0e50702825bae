-- A search goes through blocks in the order of one end of their spans, then of their ids, so that it can stop at any block
-- and go on behind it. Headers it passes over are read by these indexes' order and counted; nothing is passed over unseen.
CREATE INDEX blocks_by_end ON blocks (organization, max_seconds DESC, max_nanos DESC, block DESC);
CREATE INDEX blocks_by_begin ON blocks (organization, min_seconds, min_nanos, block);
CREATE INDEX blocks_of_project_by_end ON blocks (organization, project, max_seconds DESC, max_nanos DESC, block DESC);
CREATE INDEX blocks_of_project_by_begin ON blocks (organization, project, min_seconds, min_nanos, block);
DROP INDEX blocks_newest;
DROP INDEX blocks_oldest;

-- Blocks that span more than an hour, and only they, can reach over a time that is further than an hour from their ends.
CREATE INDEX wide_blocks_by_end ON blocks (organization, max_seconds DESC, max_nanos DESC, block DESC) WHERE max_seconds - min_seconds > 3600;
CREATE INDEX wide_blocks_by_begin ON blocks (organization, min_seconds, min_nanos, block) WHERE max_seconds - min_seconds > 3600;
