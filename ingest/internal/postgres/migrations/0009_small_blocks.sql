-- What merges look for: few blocks of each project and day. Each partition's index is built here, beside readers, for 0010 to take.
DO $$
DECLARE
	part name;
BEGIN
	FOR part IN SELECT c.relname FROM pg_partition_tree('blocks') t JOIN pg_class c ON c.oid = t.relid WHERE t.isleaf ORDER BY 1 LOOP
		EXECUTE format('CREATE INDEX %I ON %I (organization, project, received_at) WHERE text_bytes < 65536', part || '_small', part);
	END LOOP;
END $$;
