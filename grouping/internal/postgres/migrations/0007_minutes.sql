SELECT set_config('weir.organization', '*', true);
UPDATE error_groups SET seen_minute = date_trunc('minute', last_seen, 'UTC');
SELECT set_config('weir.organization', '', true);
