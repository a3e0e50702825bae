package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract/calendar"
)

// UnsealedHour locks the earliest hour that is cut but not linked;
// found is false where there is none.
func UnsealedHour(ctx context.Context, tx pgx.Tx) (hour time.Time, found bool, err error) {
	err = tx.QueryRow(ctx, `SELECT hour FROM seals WHERE root IS NULL ORDER BY hour LIMIT 1 FOR UPDATE`).Scan(&hour)
	if errors.Is(err, pgx.ErrNoRows) {
		return hour, false, nil
	}
	return hour.UTC(), err == nil, err
}

// LastSealed returns the last linked hour; found is false where there is none.
func LastSealed(ctx context.Context, tx pgx.Tx) (hour time.Time, found bool, err error) {
	var last *time.Time
	err = tx.QueryRow(ctx, `SELECT max(hour) FROM seals WHERE root IS NOT NULL`).Scan(&last)
	return timeOf(last), last != nil, err
}

// SealHour writes the links and the root of a cut hour.
func SealHour(ctx context.Context, tx pgx.Tx, hour time.Time) error {
	replayed, err := takeReplays(ctx, tx, hour)
	if err != nil {
		return fmt.Errorf("cannot take the replays: %w", err)
	}
	if _, err := tx.Exec(ctx, sealSettings); err != nil {
		return err
	}
	charged, err := chargedInHour(ctx, tx, hour, replayed)
	if err != nil {
		return fmt.Errorf("cannot read the charges: %w", err)
	}
	decided, err := decidedBy(ctx, tx, hour.Add(time.Hour))
	if err != nil {
		return fmt.Errorf("cannot read the decisions: %w", err)
	}
	links, err := nextLinks(ctx, tx, hour, charged, decided)
	if err != nil {
		return fmt.Errorf("cannot read the chains: %w", err)
	}
	if err := saveLinks(ctx, tx, links); err != nil {
		return fmt.Errorf("cannot write %d links: %w", len(links), err)
	}
	return saveRoot(ctx, tx, hour)
}

// An hourSpan bounds the charges of an hour.
type hourSpan struct {
	partitions       []int32
	firsts, nexts    []int64
	booked, accepted [2]time.Time // from and to, both inclusive
}

func spanOf(ctx context.Context, tx pgx.Tx, hour time.Time) (span hourSpan, err error) {
	rows, _ := tx.Query(ctx, `SELECT c.partition, b.next_offset, c.next_offset, r.* FROM cuts c
			CROSS JOIN LATERAL (SELECT next_offset FROM cuts WHERE partition = c.partition AND hour < c.hour ORDER BY hour DESC LIMIT 1) b
			CROSS JOIN LATERAL (SELECT min(booked_from) AS first, max(booked_at), min(effective_from), max(effective_to) FROM ranges
				WHERE partition = c.partition AND first_offset >= `+rangeOf("c.partition", "b.next_offset")+` AND first_offset < c.next_offset) r
		WHERE c.hour = $1 AND c.next_offset > b.next_offset AND r.first IS NOT NULL`, hour)
	var partition int32
	var first, next int64
	var booked, accepted [2]time.Time
	_, err = pgx.ForEachRow(rows, []any{&partition, &first, &next, &booked[0], &booked[1], &accepted[0], &accepted[1]}, func() error {
		if len(span.partitions) == 0 {
			span.booked, span.accepted = booked, accepted
		}
		span.partitions, span.firsts, span.nexts = append(span.partitions, partition), append(span.firsts, first), append(span.nexts, next)
		span.booked = [2]time.Time{calendar.Earlier(span.booked[0], booked[0]), calendar.Later(span.booked[1], booked[1])}
		span.accepted = [2]time.Time{calendar.Earlier(span.accepted[0], accepted[0]), calendar.Later(span.accepted[1], accepted[1])}
		return nil
	})
	return span, err
}

// inSpan selects the charges of an hour's stretches.
const inSpan = `SELECT t.* FROM transfers t JOIN unnest($1::int[], $2::bigint[], $3::bigint[]) AS cut (partition, first, next)
		ON cut.partition = t.partition AND "offset" >= first AND "offset" < next
	WHERE booked_at BETWEEN $4 AND $5 AND effective_at BETWEEN $6 AND $7 AND ` + ofCharges

// inSpanOrReplayed adds replayed charges to the hour that takes them.
// They are found by their booking, as no index has their offsets.
const inSpanOrReplayed = inSpan + ` AND NOT EXISTS (SELECT FROM replays r WHERE r.partition = t.partition AND r."offset" = t."offset")
	UNION ALL SELECT t.* FROM transfers t JOIN replays r USING (partition, "offset", booked_at)
	WHERE r.hour = $8 AND t.booked_at = ANY($9) AND ` + ofCharges

// chargedInHour digests the charges of a cut hour by organization.
func chargedInHour(ctx context.Context, tx pgx.Tx, hour time.Time, replayed []time.Time) (map[string]*ledger.ChargesDigest, error) {
	span, err := spanOf(ctx, tx, hour)
	if err != nil {
		return nil, err
	}
	which, args := inSpan, []any{
		customPlan, span.partitions, span.firsts, span.nexts, span.booked[0], span.booked[1], span.accepted[0], span.accepted[1],
	}
	if len(replayed) > 0 {
		which, args = inSpanOrReplayed, append(args, hour, replayed)
	}
	rows, _ := tx.Query(ctx, `SELECT `+chargeColumns+` FROM (`+which+`) t ORDER BY `+chargeOrder, args...)
	digests := map[string]*ledger.ChargesDigest{}
	return digests, forEachCharge(rows, func(organization string, c ledger.LinkedCharge) {
		if digests[organization] == nil {
			digests[organization] = ledger.NewChargesDigest()
		}
		digests[organization].Add(c)
	})
}

// takeReplays adds the charges replayed since the last hour to this
// one, and returns when they were booked.
func takeReplays(ctx context.Context, tx pgx.Tx, hour time.Time) ([]time.Time, error) {
	rows, _ := tx.Query(ctx, `UPDATE replays SET hour = $1 WHERE hour IS NULL RETURNING booked_at`, hour)
	return pgx.CollectRows(rows, pgx.RowTo[time.Time])
}

// sealSettings sorts an hour in memory and on one processor, as the
// consumers need the others.
const sealSettings = `SELECT set_config('work_mem', '64MB', true), set_config('max_parallel_workers_per_gather', '0', true)`

// decidedBy digests the unlinked decisions before an instant, by organization.
func decidedBy(ctx context.Context, tx pgx.Tx, at time.Time) (map[string]*ledger.DecisionsDigest, error) {
	rows, _ := tx.Query(ctx, `SELECT o.organization, coalesce(c.decisions, 0), e.version, e.name, e.data::text, e.metadata::text
		FROM `+unchained+` AND `+decidedAt+` < $1 ORDER BY 1, 3`, at)
	digests := map[string]*ledger.DecisionsDigest{}
	var organization string
	var behind int64
	var d ledger.LinkedDecision
	_, err := pgx.ForEachRow(rows, []any{&organization, &behind, &d.Number, &d.Name, &d.Data, &d.Metadata}, func() error {
		if digests[organization] == nil {
			digests[organization] = ledger.NewDecisionsDigest(behind)
		}
		digests[organization].Add(d)
		return nil
	})
	return digests, err
}

// nextLinks returns the links of an hour after the heads of the chains.
func nextLinks(ctx context.Context, tx pgx.Tx, hour time.Time, charged map[string]*ledger.ChargesDigest,
	decided map[string]*ledger.DecisionsDigest) (links []ledger.Link, err error) {
	touched := map[string]bool{}
	for id := range charged {
		touched[id] = true
	}
	for id := range decided {
		touched[id] = true
	}
	ids := sortedKeys(touched)
	heads, err := headsOf(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		charges, decisions := charged[id], decided[id]
		if charges == nil {
			charges = ledger.NewChargesDigest()
		}
		head := heads[id]
		if decisions == nil {
			decisions = ledger.NewDecisionsDigest(head.Decisions)
		}
		links = append(links, ledger.Link{
			Organization: id, Sequence: head.Sequence + 1, Hour: hour, Charges: charges.Charges, Bytes: charges.Bytes, Charged: charges.Sum(),
			Decisions: decisions.Through, Decided: decisions.Sum(), Previous: head.Hash,
		}.Sealed())
	}
	return links, nil
}

// headsOf returns the last links of organizations, without their content.
func headsOf(ctx context.Context, tx pgx.Tx, ids []string) (map[string]ledger.Link, error) {
	rows, _ := tx.Query(ctx, `SELECT organization, sequence, hour, decisions, hash FROM chains WHERE organization = ANY($1)`, ids)
	heads := make(map[string]ledger.Link, len(ids))
	var l ledger.Link
	var hash []byte
	_, err := pgx.ForEachRow(rows, []any{&l.Organization, &l.Sequence, &l.Hour, &l.Decisions, &hash}, func() error {
		l.Hour, l.Hash = l.Hour.UTC(), hashOf(hash)
		heads[l.Organization] = l
		return nil
	})
	return heads, err
}

// hashOf returns a stored hash. A truncated one is padded with zeros
// and so differs.
func hashOf(stored []byte) (h ledger.Hash) {
	copy(h[:], stored)
	return h
}

// saveRoot stores the root of all current chains: no later hour is written yet.
func saveRoot(ctx context.Context, tx pgx.Tx, hour time.Time) error {
	root, err := rootOfChains(ctx, tx)
	if err != nil {
		return err
	}
	var s seal
	err = tx.QueryRow(ctx, `SELECT (SELECT hash FROM checkpoints c WHERE c.hour = s.hour), refused FROM seals s WHERE hour = $1`, hour).
		Scan(&s.checkpoint, &s.refused)
	if err != nil {
		return err
	}
	sum := s.sum(root)
	_, err = tx.Exec(ctx, `UPDATE seals SET root = $2, organizations = $3, checkpoint = $4, sealed_at = clock_timestamp() WHERE hour = $1`,
		hour, sum[:], root.Organizations, s.checkpoint)
	return err
}

func rootOfChains(ctx context.Context, tx pgx.Tx) (*ledger.Root, error) {
	rows, _ := tx.Query(ctx, `SELECT organization, sequence, hash FROM chains ORDER BY organization COLLATE "C"`)
	root := ledger.NewRoot()
	var organization string
	var sequence int64
	var hash []byte
	_, err := pgx.ForEachRow(rows, []any{&organization, &sequence, &hash}, func() error {
		root.Add(organization, sequence, hashOf(hash))
		return nil
	})
	return root, err
}
