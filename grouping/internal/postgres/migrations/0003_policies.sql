-- A policy that selects its setting reads it once for a statement, and not for each row: lists of many groups take half the time.
DO $$
DECLARE name text;
BEGIN
	FOREACH name IN ARRAY ARRAY['error_groups', 'group_hashes', 'occurrences', 'group_days', 'group_budgets', 'group_packages', 'group_splits', 'releases', 'error_settings', 'error_owners', 'answers',
		'error_alerts', 'error_alert_counts', 'error_alert_log', 'source_maps', 'source_map_parts', 'source_map_searches', 'source_map_joins'] LOOP
		EXECUTE format('ALTER POLICY organization ON %I USING (organization = (SELECT current_setting(''weir.organization'', true))
			OR (SELECT current_setting(''weir.organization'', true)) = ''*'')', name);
	END LOOP;
END $$;
