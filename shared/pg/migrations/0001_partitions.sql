-- A role that serves owns no table, so the owner makes and removes partitions for it: of a day or of a value, never by a
-- text that a caller gives, and only of a table into which the caller may insert.
CREATE FUNCTION attach_partition(parent regclass, day date, value int, by name) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
	child text;
	allowed record;
BEGIN
	IF NOT has_table_privilege(session_user, parent, 'INSERT') THEN
		RAISE insufficient_privilege USING MESSAGE = format('permission denied for partitions of %s', parent);
	END IF;
	IF num_nonnulls(day, value) <> 1 OR (by IS NOT NULL AND value IS NULL) THEN
		RAISE invalid_parameter_value USING MESSAGE = format('a partition of %s is of a day, or of a value with or without partitions by a column', parent);
	END IF;
	SELECT format('%I.%I', nspname, relname || '_' || coalesce(to_char(day, 'YYYYMMDD'), value::text)) INTO STRICT child
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = parent;
	EXECUTE format('CREATE TABLE %s (LIKE %s INCLUDING ALL EXCLUDING IDENTITY)', child, parent) || coalesce(' PARTITION BY RANGE (' || quote_ident(by) || ')', '');
	EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s FOR VALUES ', parent, child) ||
		CASE WHEN day IS NULL THEN format('IN (%s)', value) ELSE format('FROM (%L) TO (%L)', day, day + 1) END;
	FOR allowed IN SELECT grantee, string_agg(privilege_type, ', ') AS rights FROM pg_class, aclexplode(relacl)
		WHERE oid = parent AND grantee NOT IN (0, relowner) GROUP BY grantee
	LOOP
		EXECUTE format('GRANT %s ON %s TO %I', allowed.rights, child, pg_get_userbyid(allowed.grantee));
	END LOOP;
END $$;

-- Others read the day meanwhile, and nobody writes to it.
CREATE FUNCTION hold_day(parent regclass, day date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	child regclass;
BEGIN
	IF NOT has_table_privilege(session_user, parent, 'INSERT') THEN
		RAISE insufficient_privilege USING MESSAGE = format('permission denied for partitions of %s', parent);
	END IF;
	SELECT inhrelid::regclass INTO STRICT child FROM pg_inherits JOIN pg_class p ON p.oid = inhparent JOIN pg_class c ON c.oid = inhrelid
		WHERE inhparent = parent AND c.relname = p.relname || to_char(day, '_YYYYMMDD');
	EXECUTE format('LOCK TABLE %s IN SHARE MODE', child);
END $$;

CREATE FUNCTION drop_day(parent regclass, day date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	child regclass;
BEGIN
	IF NOT has_table_privilege(session_user, parent, 'INSERT') THEN
		RAISE insufficient_privilege USING MESSAGE = format('permission denied for partitions of %s', parent);
	END IF;
	SELECT inhrelid::regclass INTO STRICT child FROM pg_inherits JOIN pg_class p ON p.oid = inhparent JOIN pg_class c ON c.oid = inhrelid
		WHERE inhparent = parent AND c.relname = p.relname || to_char(day, '_YYYYMMDD');
	EXECUTE format('DROP TABLE %s', child);
END $$;

CREATE FUNCTION summarize_days(parent regclass, first date, last date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF NOT has_table_privilege(session_user, parent, 'INSERT') THEN
		RAISE insufficient_privilege USING MESSAGE = format('permission denied for partitions of %s', parent);
	END IF;
	PERFORM brin_summarize_new_values(i.indexrelid) FROM pg_inherits d JOIN pg_index i ON i.indrelid = d.inhrelid
		JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = d.inhrelid
		WHERE d.inhparent = parent AND c.relam = (SELECT oid FROM pg_am WHERE amname = 'brin')
			AND right(t.relname, 8) BETWEEN to_char(first, 'YYYYMMDD') AND to_char(last, 'YYYYMMDD');
END $$;

REVOKE EXECUTE ON FUNCTION attach_partition(regclass, date, int, name), hold_day(regclass, date), drop_day(regclass, date),
	summarize_days(regclass, date, date) FROM PUBLIC;
