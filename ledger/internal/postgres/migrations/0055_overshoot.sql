-- Bytes that replicas of ingest admitted beyond what the plan allows: the operator's, never owed by the organization.
ALTER TABLE books
	ADD COLUMN overshoot bigint NOT NULL DEFAULT 0,
	DROP CONSTRAINT all_balances_sum_to_zero,
	ADD CONSTRAINT all_accounts_sum_to_zero CHECK (issuer + grant_left + consumed + overage + credit + expired + voided + overshoot = 0) NOT VALID,
	ADD CONSTRAINT overshoot_stays CHECK (overshoot >= 0) NOT VALID;
