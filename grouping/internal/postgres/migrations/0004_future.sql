-- Groups of errors that were dated in the future happened when they were accepted, by now at the latest.
SELECT set_config('weir.organization', '*', true);
UPDATE error_groups SET first_seen = least(first_seen, now()), last_seen = now() WHERE last_seen > now();
SELECT set_config('weir.organization', '', true);
