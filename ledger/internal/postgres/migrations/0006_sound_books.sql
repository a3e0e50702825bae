-- Behind the migration that added them, so that nobody waits while they look at every book.
ALTER TABLE books VALIDATE CONSTRAINT all_balances_sum_to_zero;
ALTER TABLE books VALIDATE CONSTRAINT what_is_gone_stays_gone;
