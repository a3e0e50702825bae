-- What is deleted leaves of its lines who did what to what, by their ids. Such a line keeps its hash, by which the chain goes on.
ALTER TABLE audit_events ADD COLUMN reduced_by text NOT NULL DEFAULT ''; -- the deletion; '': is as it was written
CREATE INDEX audit_events_reduced ON audit_events (organization, reduced_by, sequence) WHERE reduced_by <> '';
GRANT UPDATE (actor_name, address, client, request, target_name, before, after, reduced_by) ON audit_events TO CURRENT_USER;

DROP TRIGGER audit_events_are_kept ON audit_events;
CREATE TRIGGER audit_events_are_kept BEFORE TRUNCATE ON audit_events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_the_audit();

CREATE FUNCTION let_the_audit_be_reduced() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.reduced_by = '' OR OLD.reduced_by <> '' OR (to_jsonb(NEW) - '{actor_name,address,client,request,target_name,before,after,reduced_by}'::text[])
        <> (to_jsonb(OLD) - '{actor_name,address,client,request,target_name,before,after,reduced_by}'::text[])
        OR NEW.actor_name NOT IN ('', OLD.actor_name) OR NEW.address <> '' OR NEW.client <> '' OR NEW.request <> ''
        OR NEW.target_name NOT IN ('', OLD.target_name) OR NEW.before NOT IN ('', OLD.before) OR NEW.after NOT IN ('', OLD.after)
    THEN
        RAISE EXCEPTION 'the audit is never changed: % on % is refused', TG_OP, TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER audit_events_are_only_reduced BEFORE UPDATE ON audit_events
    FOR EACH ROW EXECUTE FUNCTION let_the_audit_be_reduced();
