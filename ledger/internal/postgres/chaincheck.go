package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract/calendar"
)

// VerifyChains checks the chains of all organizations. Links of hours
// after since are also compared with their content.
func VerifyChains(ctx context.Context, tx pgx.Tx, since time.Time) ([]ledger.Violation, error) {
	hours, err := readHours(ctx, tx)
	if err != nil {
		return nil, fmt.Errorf("cannot read the cuts: %w", err)
	}
	if err := hours.after(ctx, tx, since, oldestTransfer); err != nil {
		return nil, err
	}
	rows, _ := tx.Query(ctx, `SELECT organization FROM chains UNION SELECT DISTINCT organization FROM links ORDER BY 1`)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	var violations []ledger.Violation
	for _, id := range ids {
		found, err := hours.check(ctx, tx, id)
		if err != nil {
			return nil, fmt.Errorf("cannot check the chain of organization %q: %w", id, err)
		}
		violations = append(violations, found...)
	}
	roots, err := verifyRoots(ctx, tx)
	if err != nil {
		return nil, err
	}
	checkpoints, err := verifyCheckpoints(ctx, tx)
	return slices.Concat(violations, roots, checkpoints), err
}

// CheckChain is VerifyChains for one organization, without the roots,
// since an instant after which all ranges are kept.
func CheckChain(ctx context.Context, tx pgx.Tx, organization string, since time.Time) ([]ledger.Violation, error) {
	hours, err := readHours(ctx, tx)
	if err != nil {
		return nil, fmt.Errorf("cannot read the cuts: %w", err)
	}
	if err := hours.after(ctx, tx, since, oldestRange); err != nil {
		return nil, err
	}
	return hours.check(ctx, tx, organization)
}

// logHours maps offsets to hours of the log.
type logHours struct {
	first   time.Time // earlier cuts are gone
	cuts    map[int][]cutAt
	replays map[logPosition]time.Time // bounded by the replays that are kept

	since  time.Time // links of later hours are compared with their content
	oldest time.Time // when the oldest charge of those hours counts
}

type cutAt struct {
	hour time.Time
	next int64
}

type logPosition struct {
	partition int
	offset    int64
}

func readHours(ctx context.Context, tx pgx.Tx) (logHours, error) {
	hours := logHours{cuts: map[int][]cutAt{}, replays: map[logPosition]time.Time{}}
	if err := hours.readCuts(ctx, tx); err != nil {
		return hours, err
	}
	return hours, hours.readReplays(ctx, tx)
}

// readCuts reads those of hours that are sealed with a root.
func (h *logHours) readCuts(ctx context.Context, tx pgx.Tx) error {
	rows, _ := tx.Query(ctx, `SELECT partition, hour, next_offset FROM cuts WHERE hour <= (SELECT max(hour) FROM seals WHERE root IS NOT NULL)
		ORDER BY partition, hour`)
	var partition int
	var c cutAt
	_, err := pgx.ForEachRow(rows, []any{&partition, &c.hour, &c.next}, func() error {
		c.hour = c.hour.UTC()
		if h.first.IsZero() || c.hour.Before(h.first) {
			h.first = c.hour
		}
		h.cuts[partition] = append(h.cuts[partition], c)
		return nil
	})
	return err
}

func (h *logHours) readReplays(ctx context.Context, tx pgx.Tx) error {
	rows, _ := tx.Query(ctx, `SELECT partition, "offset", coalesce(hour, 'epoch') FROM replays`)
	var place logPosition
	var hour time.Time
	_, err := pgx.ForEachRow(rows, []any{&place.partition, &place.offset, &hour}, func() error {
		h.replays[place] = hour.UTC()
		return nil
	})
	return err
}

// of returns the hour of an offset; ok is false where it is not cut or
// no longer known.
func (h logHours) of(place logPosition) (hour time.Time, ok bool) {
	if hour, ok := h.replays[place]; ok {
		return hour, hour.After(h.first)
	}
	cuts := h.cuts[place.partition]
	at, _ := slices.BinarySearchFunc(cuts, place.offset, func(c cutAt, offset int64) int {
		if c.next <= offset {
			return -1
		}
		return 1
	})
	if at == 0 || at == len(cuts) {
		return hour, false
	}
	return cuts[at].hour, true
}

// When the oldest charge of the hours after $3 counts: of offsets from $2
// on, and of replayed ones. Where all ranges since then are kept, these say
// so without a look at all transfers.
var (
	oldestTransfer = `SELECT coalesce(min(effective_at), $3) FROM transfers t LEFT JOIN unnest($1::int[], $2::bigint[]) AS c (partition, first) USING (partition)
		WHERE ` + ofCharges + ` AND ("offset" >= first OR EXISTS (
			SELECT FROM replays r WHERE r.hour > $3 AND r.partition = t.partition AND r."offset" = t."offset"))`
	oldestRange = `WITH begun AS (SELECT * FROM unnest($1::int[], $2::bigint[]) AS c (partition, first)),
		replayed AS (SELECT partition, "offset" AS at FROM replays WHERE hour > $3)
	SELECT coalesce(min(effective_from), $3) FROM (
		SELECT effective_from FROM begun b CROSS JOIN LATERAL (SELECT effective_from FROM ranges
			WHERE partition = b.partition AND first_offset >= ` + rangeOf("b.partition", "b.first") + ` AND next_offset > b.first) r
		UNION ALL SELECT effective_from FROM replayed p CROSS JOIN LATERAL (SELECT effective_from FROM ranges
			WHERE partition = p.partition AND first_offset = ` + rangeOf("p.partition", "p.at") + `) r) o`
)

// after sets since when links are compared, and asks for the oldest charge
// of those. Records may lie in the log long after they were accepted,
// as those of a server whose clock was behind.
func (h *logHours) after(ctx context.Context, tx pgx.Tx, since time.Time, oldest string) error {
	h.since = calendar.Later(since, h.first)
	var partitions []int
	var firsts []int64
	for partition, cuts := range h.cuts {
		first := cuts[0].next
		for _, c := range cuts {
			if !c.hour.After(h.since) {
				first = c.next
			}
		}
		partitions, firsts = append(partitions, partition), append(firsts, first)
	}
	if err := tx.QueryRow(ctx, oldest, customPlan, partitions, firsts, h.since).Scan(&h.oldest); err != nil {
		return fmt.Errorf("cannot read the oldest charge since %s: %w", h.since, err)
	}
	return nil
}

// check checks a chain: each link against the one before, the last
// against the head, and those after since against their content.
func (h logHours) check(ctx context.Context, tx pgx.Tx, organization string) ([]ledger.Violation, error) {
	rows, _ := tx.Query(ctx, `SELECT `+linkColumns+` FROM links WHERE organization = $1 ORDER BY sequence`, organization)
	links, err := collectLinks(rows)
	if err != nil {
		return nil, err
	}
	heads, err := headsOf(ctx, tx, []string{organization})
	if err != nil {
		return nil, err
	}
	violations := ledger.CheckLinks(links, heads[organization])
	charges, err := h.checkCharges(ctx, tx, organization, links)
	if err != nil {
		return nil, err
	}
	decisions, err := checkDecisions(ctx, tx, organization, links)
	return slices.Concat(violations, charges, decisions), err
}

// checkCharges compares links with the transfers of their hours.
func (h logHours) checkCharges(ctx context.Context, tx pgx.Tx, organization string, links []ledger.Link) ([]ledger.Violation, error) {
	rows, _ := tx.Query(ctx, `SELECT `+chargeColumns+` FROM transfers t WHERE `+ofOrganization+` AND `+ofCharges+` AND effective_at >= $2
		ORDER BY `+chargeOrder, customPlan, organization, h.oldest)
	digests := map[time.Time]*ledger.ChargesDigest{}
	err := forEachCharge(rows, func(_ string, c ledger.LinkedCharge) {
		hour, ok := h.of(logPosition{c.Partition, c.Offset})
		if !ok || !hour.After(h.since) {
			return
		}
		if digests[hour] == nil {
			digests[hour] = ledger.NewChargesDigest()
		}
		digests[hour].Add(c)
	})
	if err != nil {
		return nil, err
	}
	return compareCharges(organization, links, digests, h.since), nil
}

func compareCharges(organization string, links []ledger.Link, digests map[time.Time]*ledger.ChargesDigest, since time.Time) []ledger.Violation {
	var violations []ledger.Violation
	for _, link := range links {
		if !link.Hour.After(since) {
			continue
		}
		found := cmp.Or(digests[link.Hour], ledger.NewChargesDigest())
		delete(digests, link.Hour)
		if found.Sum() != link.Charged || found.Bytes != link.Bytes || found.Charges != link.Charges {
			violations = append(violations, ledger.Violation{Invariant: ledger.ChainIsCharges, Detail: fmt.Sprintf(
				"organization %q, link %d of %s: it has %d bytes of %d charges, the transfers are %d of %d, with the hash %x",
				organization, link.Sequence, link.Hour.Format(time.RFC3339), link.Bytes, link.Charges, found.Bytes, found.Charges, found.Sum())})
		}
	}
	for hour, found := range digests {
		violations = append(violations, ledger.Violation{Invariant: ledger.ChainIsCharges, Detail: fmt.Sprintf(
			"organization %q, hour %s: no link has the %d bytes of %d charges", organization, hour.Format(time.RFC3339), found.Bytes, found.Charges)})
	}
	return violations
}

// checkDecisions compares links with their decisions. Those of a
// deleted organization are gone, as are those before the first link kept.
func checkDecisions(ctx context.Context, tx pgx.Tx, organization string, links []ledger.Link) ([]ledger.Violation, error) {
	if len(links) == 0 {
		return nil, nil
	}
	behind := links[0].Decisions
	if links[0].Sequence == 1 {
		behind = 0
	} else {
		links = links[1:]
	}
	rows, _ := tx.Query(ctx, `SELECT e.version, e.name, e.data::text, e.metadata::text, NOT (`+notErased+`) FROM events e
		WHERE e.organization = $1 AND e.stream = $2 AND e.version > $3 ORDER BY 1`, organization, decisionStream, behind)
	var decided []ledger.LinkedDecision
	var d ledger.LinkedDecision
	var erased, one bool
	_, err := pgx.ForEachRow(rows, []any{&d.Number, &d.Name, &d.Data, &d.Metadata, &one}, func() error {
		decided, erased = append(decided, d), erased || one
		return nil
	})
	if err != nil || erased {
		return nil, err
	}
	return compareDecisions(organization, links, decided, behind), nil
}

func compareDecisions(organization string, links []ledger.Link, decided []ledger.LinkedDecision, behind int64) (violations []ledger.Violation) {
	for _, link := range links {
		digest := ledger.NewDecisionsDigest(behind)
		for len(decided) > 0 && decided[0].Number <= link.Decisions {
			digest.Add(decided[0])
			decided = decided[1:]
		}
		if behind = link.Decisions; digest.Through != link.Decisions || digest.Sum() != link.Decided {
			violations = append(violations, ledger.Violation{Invariant: ledger.ChainIsCharges, Detail: fmt.Sprintf(
				"organization %q, link %d of %s: its decisions differ from those kept, through number %d",
				organization, link.Sequence, link.Hour.Format(time.RFC3339), link.Decisions)})
		}
	}
	return violations
}

// A seal is an hour with its root.
type seal struct {
	hour          time.Time
	root          []byte
	organizations int64
	checkpoint    []byte // in the root; nil: none
	refused       []byte // hash of the sums of refusals, in the root; nil: none
}

const sealColumns = `hour, root, organizations, checkpoint, refused`

func (s *seal) fields() []any {
	return []any{&s.hour, &s.root, &s.organizations, &s.checkpoint, &s.refused}
}

// sum returns the hash of a root of chains with what else the hour has.
func (s seal) sum(root *ledger.Root) ledger.Hash {
	for _, hash := range [][]byte{s.checkpoint, s.refused} {
		if hash != nil {
			root.AddHash(hashOf(hash))
		}
	}
	return root.Sum()
}

// verifyRoots computes each root again where its links are kept, from the
// chains before them and the links since.
func verifyRoots(ctx context.Context, tx pgx.Tx) ([]ledger.Violation, error) {
	return verifyRootsOf(ctx, tx, `root IS NOT NULL AND hour >= coalesce((SELECT min(hour) FROM links), 'infinity')`)
}

// verifyRootOf computes the root of an hour again.
func verifyRootOf(ctx context.Context, tx pgx.Tx, hour time.Time) ([]ledger.Violation, error) {
	return verifyRootsOf(ctx, tx, `hour = $1`, hour)
}

func verifyRootsOf(ctx context.Context, tx pgx.Tx, which string, args ...any) ([]ledger.Violation, error) {
	rows, _ := tx.Query(ctx, `SELECT `+sealColumns+` FROM seals WHERE `+which+` ORDER BY hour`, args...)
	var seals []seal
	var s seal
	if _, err := pgx.ForEachRow(rows, s.fields(), func() error {
		seals = append(seals, s)
		return nil
	}); err != nil || len(seals) == 0 {
		return nil, err
	}
	heads, err := headsBeforeLinks(ctx, tx)
	if err != nil {
		return nil, err
	}
	return heads.compare(ctx, tx, seals)
}

// chainHeads are the heads of chains at an instant, by organization.
type chainHeads map[string]ledger.Link

// headsBeforeLinks returns the heads before the first links kept.
func headsBeforeLinks(ctx context.Context, tx pgx.Tx) (chainHeads, error) {
	rows, _ := tx.Query(ctx, `SELECT organization, sequence - 1, previous FROM
			(SELECT DISTINCT ON (organization) organization, sequence, previous FROM links ORDER BY organization, sequence) l WHERE sequence > 1
		UNION ALL SELECT organization, sequence, hash FROM chains c WHERE NOT EXISTS (SELECT FROM links l WHERE l.organization = c.organization)`)
	heads := chainHeads{}
	var l ledger.Link
	var hash []byte
	_, err := pgx.ForEachRow(rows, []any{&l.Organization, &l.Sequence, &hash}, func() error {
		l.Hash = hashOf(hash)
		heads[l.Organization] = l
		return nil
	})
	return heads, err
}

// compare adds the links hour by hour and compares each seal's root.
func (h chainHeads) compare(ctx context.Context, tx pgx.Tx, seals []seal) (violations []ledger.Violation, err error) {
	rows, _ := tx.Query(ctx, `SELECT organization, sequence, hour, hash FROM links WHERE hour <= $1 ORDER BY hour, organization`, seals[len(seals)-1].hour)
	var l ledger.Link
	var hash []byte
	_, err = pgx.ForEachRow(rows, []any{&l.Organization, &l.Sequence, &l.Hour, &hash}, func() error {
		for len(seals) > 0 && l.Hour.After(seals[0].hour) {
			violations, seals = append(violations, h.differs(seals[0])...), seals[1:]
		}
		l.Hash = hashOf(hash)
		h[l.Organization] = l
		return nil
	})
	for _, s := range seals {
		violations = append(violations, h.differs(s)...)
	}
	return violations, err
}

func (h chainHeads) differs(s seal) []ledger.Violation {
	root := ledger.NewRoot()
	for _, id := range sortedKeys(h) {
		root.Add(id, h[id].Sequence, h[id].Hash)
	}
	if sum := s.sum(root); !slices.Equal(sum[:], s.root) || root.Organizations != s.organizations {
		return []ledger.Violation{{Invariant: ledger.RootIsChains, Detail: fmt.Sprintf("hour %s: the root of %d chains is %x, that of the %d that are kept %x",
			s.hour.UTC().Format(time.RFC3339), s.organizations, s.root, root.Organizations, sum)}}
	}
	return nil
}

// CheckLastRoot compares the root of the last sealed hour with that of
// the current chains.
func CheckLastRoot(ctx context.Context, tx pgx.Tx) ([]ledger.Violation, error) {
	var s seal
	err := tx.QueryRow(ctx, `SELECT `+sealColumns+` FROM seals WHERE root IS NOT NULL ORDER BY hour DESC LIMIT 1`).Scan(s.fields()...)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	root, err := rootOfChains(ctx, tx)
	if err != nil {
		return nil, err
	}
	if sum := s.sum(root); !slices.Equal(sum[:], s.root) || root.Organizations != s.organizations {
		return []ledger.Violation{{Invariant: ledger.RootIsChains, Detail: fmt.Sprintf("hour %s: the root of %d chains is %x, that of the %d that there are %x",
			s.hour.UTC().Format(time.RFC3339), s.organizations, s.root, root.Organizations, sum)}}, nil
	}
	return nil, nil
}
