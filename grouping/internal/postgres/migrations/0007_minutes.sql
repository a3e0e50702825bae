-- Who counts waits: it locks groups in another order.
LOCK TABLE error_groups IN SHARE ROW EXCLUSIVE MODE;
SELECT set_config('weir.organization', '*', true);
UPDATE error_groups SET seen_minute = date_trunc('minute', last_seen, 'UTC');
SELECT set_config('weir.organization', '', true);
