-- Behind the migration that added them, so that nobody waits while they look at every book.
ALTER TABLE books VALIDATE CONSTRAINT all_accounts_sum_to_zero;
ALTER TABLE books VALIDATE CONSTRAINT overshoot_stays;
