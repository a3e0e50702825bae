package postgres_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/bus"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

// Random histories of errors, states, releases, assignments, merges and splits, of groups that are archived and members who
// are removed, with errors that come late, transactions that are repeated and two replicas beside a merge, end as a naive
// model does, which counts all errors again each time. What is rebuilt from the log and the decisions is the same.
func TestHistoriesLikeModel(t *testing.T) {
	random, pool := testenv.Random(t, 7), open(t)
	for n := range testenv.Rounds(t, 20, 100_000) {
		h := &history{T: t, pool: pool, random: random, organization: fmt.Sprintf("org%d", n), now: noon, merged: map[string]joined{}, splits: map[string]time.Time{},
			states: map[string]*outcome{}, open: map[string]time.Time{}, assignees: map[string]string{}, facts: map[string]int{}, unsure: map[string]int{}}
		for range 5 + random.IntN(20) {
			h.now = h.now.Add(time.Duration(1+random.IntN(90)) * time.Second)
			h.step()
			if random.IntN(8) == 0 {
				h.compare("meanwhile")
			}
		}
		h.flush()
		h.compare("in the end")
		h.compareFacts()
		h.rebuild()
		h.compare("rebuilt")
		if t.Failed() {
			t.Fatalf("history %d: %q", n, h.log)
		}
	}
}

// history is one organization, and the model of it.
type history struct {
	*testing.T
	pool         *pgxpool.Pool
	random       *rand.Rand
	organization string
	now          time.Time
	log          []string

	held    []grouping.Occurrence // accepted, but not yet applied
	applied []grouping.Occurrence
	merged  map[string]joined    // members, by their own group
	splits  map[string]time.Time // by kind
	states  map[string]*outcome  // of heads; nil: unresolved
	open    map[string]time.Time // since when unresolved heads are so; zero: since their first error
	facts   map[string]int
	unsure  map[string]int // facts about groups that were merged at the same time: there is one if the error came first

	assignees map[string]string // of groups
}

type joined struct {
	head string
	at   time.Time
}

type outcome struct {
	status grouping.Status
	since  time.Time
	left   int // errors that an ignored group still ignores
	in     grouping.Resolution
	seen   time.Time // the last error of an archived group
}

// totals are what people see of a group.
type totals struct {
	Status       grouping.Status
	Count        int64
	First, Last  time.Time
	Severities   grouping.Severity
	Environments []string
	Releases     [2]string
	Members      int
	Assignee     string
}

// kindOf names errors that are alike, and is their group if it was split off.
func kindOf(o grouping.Occurrence) string { return o.Error.Type + " " + o.Error.StackTrace[4] }

// own is the group that an error is counted in.
func (h *history) own(o grouping.Occurrence) string {
	if at, split := h.splits[kindOf(o)]; split && o.Accepted.After(at) {
		return kindOf(o)
	}
	return o.Error.Type
}

func (h *history) headOf(group string) string { return cmp.Or(h.merged[group].head, group) }

// idOf is the id of a group of the model.
func (h *history) idOf(group string) string {
	for _, o := range h.applied {
		if h.own(o) != group {
			continue
		}
		var g grouping.Grouper
		f := g.Fingerprint(o.Error)
		id := grouping.GroupID(o.Project, f.Deciding().Version, f.Deciding().Hash)
		if group != o.Error.Type {
			_, id = h.split(o, f)
		}
		return id
	}
	h.Fatalf("no group %q", group)
	return ""
}

// split is what a split of errors like one decides.
func (h *history) split(o grouping.Occurrence, f grouping.Fingerprint) (like, made string) {
	hash := stackOf(f)
	decided, err := grouping.Family{Head: grouping.GroupVersion{ID: "g"}}.Split("g", o.Project, hash, []grouping.SplitHashes{{Stack: hash}, {}}, nil, h.now)
	if err != nil {
		h.Fatal(err)
	}
	return hash.String(), decided["g"].Into
}

// stackOf is the hash by which errors can be split off.
func stackOf(f grouping.Fingerprint) grouping.Hash { return f.At(grouping.Levels[1]).Hash }

func (h *history) groups() []string {
	seen := map[string]bool{}
	for _, o := range h.applied {
		seen[h.own(o)] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

func (h *history) heads() []string {
	return slices.DeleteFunc(h.groups(), func(g string) bool { return h.headOf(g) != g })
}

func (h *history) step() {
	heads := h.heads()
	switch n := h.random.IntN(16); {
	case n < 6 || len(heads) == 0:
		h.accept()
		h.flushSome()
	case n < 8:
		h.decide(heads[h.random.IntN(len(heads))])
	case n < 10:
		h.random.Shuffle(len(heads), func(i, j int) { heads[i], heads[j] = heads[j], heads[i] })
		h.merge(heads[:min(len(heads), 1+h.random.IntN(3))])
	case n == 10:
		h.unmerge()
	case n < 13:
		h.assign(heads[h.random.IntN(len(heads))])
	case n == 13:
		h.remove("mem_1")
	case n == 14:
		h.archive()
	default:
		h.splitOff()
	}
}

func (h *history) accept() {
	for range 1 + h.random.IntN(4) {
		at := h.now.Add(-time.Duration(h.random.IntN(300)*h.random.IntN(2)) * time.Second)
		at = at.Add(time.Duration(len(h.applied)+len(h.held)) * time.Microsecond).Add(-time.Millisecond) // no two at once
		typ := []string{"AlphaError", "BetaError", "GammaError", "DeltaError"}[h.random.IntN(4)]
		h.held = append(h.held, grouping.Occurrence{
			Organization: h.organization, Project: "shop", Entry: fmt.Sprint("entry", len(h.applied)+len(h.held)), Accepted: h.now, Expires: grouping.Expiry(h.now, 7), At: at,
			Severity: 1 << h.random.IntN(5), Environment: []string{"prod", "staging", "dev"}[h.random.IntN(3)], Release: h.release(),
			Error: grouping.Error{Type: typ, Message: "it broke", StackTrace: append(calledBy("x"), "at com.acme.Y."+[]string{"web", "job"}[h.random.IntN(2)]+"(Y.java:1)")},
		})
	}
}

// release is one of a package, the later the newer, mostly.
func (h *history) release() string {
	return []string{"shop@", "job@"}[h.random.IntN(2)] + fmt.Sprintf("1.%d", len(h.log)/4+h.random.IntN(3))
}

// newer compares releases, if they are of one package.
func newer(a, b string) (order int, comparable bool) {
	var x, y int
	ofA, versionA, _ := strings.Cut(a, "@1.")
	ofB, versionB, _ := strings.Cut(b, "@1.")
	_, errA := fmt.Sscan(versionA, &x)
	_, errB := fmt.Sscan(versionB, &y)
	return cmp.Compare(x, y), ofA == ofB && errA == nil && errB == nil
}

// take removes some held errors.
func (h *history) take() []grouping.Occurrence {
	h.random.Shuffle(len(h.held), func(i, j int) { h.held[i], h.held[j] = h.held[j], h.held[i] })
	n := h.random.IntN(len(h.held) + 1)
	taken := slices.Clone(h.held[:n])
	h.held = h.held[n:]
	return taken
}

// takeKnown is take without errors that change when a release was first seen: what is
// counted beside them would depend on which comes first.
func (h *history) takeKnown() []grouping.Occurrence {
	var kept []grouping.Occurrence
	taken := slices.DeleteFunc(h.take(), func(o grouping.Occurrence) bool {
		first, known := h.firstSight(o.Release)
		news := !known || o.Accepted.Before(first)
		if news {
			kept = append(kept, o)
		}
		return news
	})
	h.held = append(h.held, kept...)
	return taken
}

// firstSight is when a release was first accepted, as far as that is applied.
func (h *history) firstSight(release string) (at time.Time, known bool) {
	for _, o := range h.applied {
		if o.Release == release && (!known || o.Accepted.Before(at)) {
			at, known = o.Accepted, true
		}
	}
	return at, known
}

func (h *history) flushSome() { h.apply(h.take()) }

func (h *history) flush() {
	taken := h.held
	h.held = nil
	h.apply(taken)
}

func (h *history) apply(taken []grouping.Occurrence) {
	if h.random.IntN(4) == 0 { // of a replica that stops before it commits
		if err := h.count(taken, true); !errors.Is(err, errStopped) {
			h.Fatal(err)
		}
	}
	if err := h.count(taken, false); err != nil {
		h.Fatal(err)
	}
	h.counted(taken, nil)
}

var errStopped = errors.New("stopped")

// count applies errors in one transaction, as a consumer does.
func (h *history) count(taken []grouping.Occurrence, stops bool) error {
	ctx := h.Context()
	return pg.InTxAsSystem(ctx, h.pool, func(tx pgx.Tx) error {
		project := postgres.Project{Organization: h.organization, Name: "shop"}
		learned, err := postgres.FindLearned(ctx, tx, []postgres.Project{project})
		if err != nil {
			return err
		}
		tally := grouping.NewTally()
		for _, o := range taken {
			o.Error.Learned = learned[project]
			tally.Add(o)
		}
		effect, err := postgres.Writer{NewGroups: grouping.Budgets{Project: math.MaxInt, Organization: math.MaxInt}}.Apply(ctx, tx, tally.Counts())
		if err != nil {
			return err
		}
		if stops {
			return errStopped
		}
		return bus.Announce(ctx, tx, effect.Decided)
	})
}

// counted is what the model makes of errors that came beside a merge of some groups into another.
func (h *history) counted(taken []grouping.Occurrence, merging []string) {
	h.note("apply %d", len(taken))
	h.applied = append(h.applied, taken...)
	slices.SortFunc(taken, func(a, b grouping.Occurrence) int { return a.At.Compare(b.At) })
	for _, o := range taken {
		own := h.own(o)
		head := h.headOf(own)
		if head != own && !o.At.After(h.merged[own].at) {
			continue
		}
		if fact := h.opens(h.states[head], o); fact != "" {
			delete(h.states, head)
			h.open[head] = o.At
			if slices.Contains(merging, head) {
				h.unsure[fact]++
			} else {
				h.announced(fact)
			}
		}
	}
}

// opens says which fact it makes that an error opens a group again; empty: it does not.
func (h *history) opens(s *outcome, o grouping.Occurrence) (fact string) {
	switch {
	case s == nil:
	case s.status == grouping.Archived:
		if o.At.After(s.seen) || o.Accepted.After(s.since) {
			return "reopened"
		}
	case !o.At.After(s.since):
	case s.status == grouping.Resolved && h.breaks(s, o):
		return "regressed"
	case s.status == grouping.Ignored:
		if s.left--; s.left == 0 {
			return "unignored"
		}
	}
	return ""
}

// breaks reports whether a later error shows that what was resolved is not mended.
func (h *history) breaks(s *outcome, o grouping.Occurrence) bool {
	switch {
	case s.in.Next:
		first, _ := h.firstSight(o.Release)
		for environment, had := range s.in.After {
			order, same := newer(o.Release, had)
			if !same || environment == o.Environment && order <= 0 {
				return false
			}
		}
		return first.After(s.since)
	case s.in.Release != "":
		order, same := newer(o.Release, s.in.Release)
		return same && order >= 0
	}
	return true
}

// inEach is the newest release of a package in each environment.
func (h *history) inEach(like string) map[string]string {
	newest := map[string]string{}
	for _, o := range h.applied {
		if _, same := newer(o.Release, like); !same {
			continue
		}
		if order, _ := newer(o.Release, newest[o.Environment]); newest[o.Environment] == "" || order > 0 {
			newest[o.Environment] = o.Release
		}
	}
	return newest
}

func (h *history) note(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

func (h *history) asOrganization(fn func(ctx context.Context, tx pgx.Tx) error) {
	h.Helper()
	err := pg.InTx(h.Context(), h.pool, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(h.Context(), tx, pg.Organization(h.organization)); err != nil {
			return err
		}
		return fn(h.Context(), tx)
	})
	if err != nil {
		h.Fatal(err)
	}
}

func (h *history) decide(group string) {
	command := grouping.Command{Status: []grouping.Status{grouping.Resolved, grouping.Ignored, grouping.Unresolved}[h.random.IntN(3)]}
	if command.Status == grouping.Ignored {
		command.Until.Count = 3
	}
	in := h.random.IntN(3)
	if command.Status == grouping.Resolved && in == 0 {
		command.Resolution.Release = h.release()
	}
	h.note("%s %s %s", command.Status, group, command.Resolution.Release)
	changes := true
	h.asOrganization(func(ctx context.Context, tx pgx.Tx) error {
		made, err := postgres.LockHeads(ctx, tx, pg.Organization(h.organization), []string{h.idOf(group)})
		if err != nil {
			return err
		}
		if like := made[0].Group.LastRelease; command.Status == grouping.Resolved && in == 1 {
			known, err := postgres.FindReleases(ctx, tx, postgres.Project{Organization: h.organization, Name: "shop"})
			if err != nil {
				return err
			}
			command.Resolution = grouping.Resolution{Next: true, After: known.InEach(like)}
			if want := h.inEach(like); !maps.Equal(command.Resolution.After, want) {
				h.Errorf("%s is resolved after %v, want %v", group, command.Resolution.After, want)
			}
		}
		if made[0].Decisions, err = made[0].Group.State.Decide(command, made[0].Group.Version, h.now); err != nil {
			return err
		}
		changes = len(made[0].Decisions) > 0
		_, err = postgres.Record(ctx, tx, made, ada)
		return err
	})
	if s := h.states[group]; s != nil && (s.status == command.Status && reflect.DeepEqual(s.in, command.Resolution)) != !changes {
		h.Errorf("%s is %+v, and %s changes it: %t", group, s, command.Status, changes)
	}
	if !changes {
		return
	}
	delete(h.states, group)
	if h.open[group] = h.now; command.Status != grouping.Unresolved {
		h.states[group] = &outcome{status: command.Status, since: h.now, left: 3, in: command.Resolution}
	}
}

func (h *history) assign(group string) {
	to := []string{"payments", "mem_1", ""}[h.random.IntN(3)]
	h.note("%s looks after %s", to, group)
	h.asOrganization(func(ctx context.Context, tx pgx.Tx) error {
		made, err := postgres.LockHeads(ctx, tx, pg.Organization(h.organization), []string{h.idOf(group)})
		if err != nil {
			return err
		}
		if made[0].Decisions, err = made[0].Group.State.Decide(grouping.Command{Assign: &grouping.Assignee{ID: to}}, made[0].Group.Version, h.now); err != nil {
			return err
		}
		if changes := len(made[0].Decisions) > 0; changes != (h.assignees[group] != to) {
			h.Errorf("%s looks after %s, and %s changes that: %t", h.assignees[group], group, to, changes)
		}
		changed, err := postgres.Record(ctx, tx, made, ada)
		if err != nil {
			return err
		}
		return bus.Announce(ctx, tx, changed)
	})
	if h.assignees[group] != to {
		h.announced("assigned")
	}
	h.assignees[group] = to
}

// remove removes a member from the organization.
func (h *history) remove(member string) {
	h.note("remove %s", member)
	asSystem(h, h.pool, func(tx pgx.Tx) error {
		changed, err := postgres.Unassign(h.Context(), tx, []postgres.RemovedMember{{Organization: h.organization, ID: member, At: h.now}})
		if err != nil {
			return err
		}
		return bus.Announce(h.Context(), tx, changed)
	})
	for group, assignee := range h.assignees {
		if assignee == member {
			delete(h.assignees, group)
			h.announced("assigned")
		}
	}
}

// archive lets days go by, sometimes, and archives what was quiet for one.
func (h *history) archive() {
	h.now = h.now.Add(time.Duration(h.random.IntN(2)) * 50 * time.Hour)
	for last := (postgres.GroupCursor{}); ; {
		asSystem(h, h.pool, func(tx pgx.Tx) (err error) {
			var changed []postgres.Change
			of := postgres.Archiving{Project: postgres.Project{Organization: h.organization, Name: "shop"}, Days: 1}
			if changed, last, err = postgres.ArchiveQuiet(h.Context(), tx, of, last, h.now); err != nil {
				return err
			}
			return bus.Announce(h.Context(), tx, changed)
		})
		if last == (postgres.GroupCursor{}) {
			break
		}
	}
	before := h.now.Add(-24 * time.Hour)
	for _, head := range h.heads() {
		if h.states[head] != nil || !h.open[head].Before(before) {
			continue
		}
		if last, arrived := h.lastOf(head); last.Before(before) && arrived.Before(before.Truncate(24*time.Hour)) {
			h.note("archive %s", head)
			h.states[head] = &outcome{status: grouping.Archived, since: h.now, seen: last}
			h.announced("quiet")
		}
	}
}

// lastOf is when the last error of a head happened, and when the last one was accepted.
func (h *history) lastOf(head string) (at, accepted time.Time) {
	for _, o := range h.applied {
		if h.headOf(h.own(o)) != head {
			continue
		}
		if o.At.After(at) {
			at = o.At
		}
		if o.Accepted.After(accepted) {
			accepted = o.Accepted
		}
	}
	return at, accepted
}

// merge merges groups into the first, while two replicas count errors.
func (h *history) merge(groups []string) {
	var ids []string
	for _, g := range groups {
		ids = append(ids, h.idOf(g))
	}
	first, second := h.takeKnown(), h.takeKnown()
	var running sync.WaitGroup
	for _, taken := range [][]grouping.Occurrence{first, second} {
		running.Go(func() {
			for range 100 {
				err := h.count(taken, false)
				if err == nil {
					return
				}
				if h.Context().Err() != nil || pg.IsTransient(err) { // such as a deadlock
					h.Error(err)
				}
			}
			h.Error("never counted")
		})
	}
	running.Go(func() {
		if err := applyMergesOf(h.Context(), h.pool, h.organization, ids, func(families []grouping.Family) (grouping.GroupDecisions, error) {
			into := slices.IndexFunc(families, func(f grouping.Family) bool { return f.Head.ID == ids[0] })
			return families[into].Merge(families, nil, h.now)
		}); err != nil {
			h.Error(err)
		}
	})
	running.Wait()
	h.counted(first, groups[1:])
	h.counted(second, groups[1:])
	h.note("merge %q", groups)
	for member, to := range h.merged {
		if slices.Contains(groups[1:], to.head) {
			h.merged[member] = joined{groups[0], h.now}
			h.announced("merged")
		}
	}
	for _, g := range groups[1:] {
		h.merged[g] = joined{groups[0], h.now}
		delete(h.states, g)
		delete(h.open, g)
		h.announced("merged")
	}
}

func (h *history) announced(fact string) { h.facts[fact]++ }

func (h *history) unmerge() {
	members := slices.Sorted(maps.Keys(h.merged))
	if len(members) == 0 {
		return
	}
	member := members[h.random.IntN(len(members))]
	h.note("unmerge %s", member)
	id := h.idOf(member)
	if err := applyMergesOf(h.Context(), h.pool, h.organization, []string{id}, func(families []grouping.Family) (grouping.GroupDecisions, error) {
		return families[0].Unmerge([]string{id}, nil, h.now)
	}); err != nil {
		h.Fatal(err)
	}
	delete(h.merged, member)
	h.open[member] = h.now
	h.announced("unmerged")
}

func (h *history) splitOff() {
	o := h.applied[h.random.IntN(len(h.applied))]
	var g grouping.Grouper
	like := stackOf(g.Fingerprint(o.Error))
	h.asOrganization(func(ctx context.Context, tx pgx.Tx) error {
		families, err := postgres.LockFamilies(ctx, tx, pg.Organization(h.organization), []string{h.idOf(h.own(o))})
		if err != nil {
			return err
		}
		of, samples, err := postgres.FindSplitHashes(ctx, tx, pg.Organization(h.organization), families[0], like)
		if errors.Is(err, postgres.ErrNoSample) {
			return nil
		}
		if err != nil {
			return err
		}
		decided, err := families[0].Versions().Split(of.Group.ID, of.Group.Project, like, samples, nil, h.now)
		var invalid grouping.Invalid
		if errors.As(err, &invalid) {
			return nil
		}
		if err != nil {
			return err
		}
		saved, err := postgres.SaveSplit(ctx, tx, of, decided[of.Group.ID])
		if _, known := h.splits[kindOf(o)]; known == saved {
			h.Errorf("split %s: %t", kindOf(o), saved)
		}
		if err != nil || !saved {
			return err
		}
		h.note("split %s", kindOf(o))
		h.splits[kindOf(o)] = h.now
		h.announced("split")
		changed, err := postgres.Record(ctx, tx, postgres.DecidedGroups(families, decided), ada)
		if err != nil {
			return err
		}
		return bus.Announce(ctx, tx, changed)
	})
}

// want is what the model shows.
func (h *history) want() map[string]totals {
	all := map[string]totals{}
	for _, o := range h.applied {
		head := h.headOf(h.own(o))
		g, again := all[head]
		if g.Count++; !again || o.At.Before(g.First) {
			g.First, g.Releases[0] = o.At, o.Release
		}
		if !again || o.At.After(g.Last) {
			g.Last, g.Releases[1] = o.At, o.Release
		}
		g.Severities |= o.Severity
		g.Environments = grouping.AddNames(g.Environments, o.Environment)
		g.Status = grouping.Unresolved
		if s := h.states[head]; s != nil {
			g.Status = s.status
		}
		all[head] = g
	}
	byID := map[string]totals{}
	for head, g := range all {
		for _, to := range h.merged {
			if to.head == head {
				g.Members++
			}
		}
		g.Assignee = h.assignees[head]
		byID[h.idOf(head)] = g
	}
	return byID
}

func (h *history) compare(when string) {
	h.Helper()
	got := map[string]totals{}
	for _, g := range list(h, h.pool, h.organization, postgres.GroupQuery{}) {
		got[g.ID] = totals{g.Status, g.Count, g.FirstSeen.UTC(), g.LastSeen.UTC(), g.Severities, g.Environments, [2]string{g.FirstRelease, g.LastRelease}, g.Members, g.State.Assignee.ID}
	}
	if want := h.want(); !reflect.DeepEqual(got, want) {
		h.Errorf("%s it is\n%+v, want\n%+v", when, got, want)
	}
	if len(h.applied) > 0 {
		h.compareRelease(when, h.applied[h.random.IntN(len(h.applied))].Release)
	}
}

// compareRelease searches for the groups that were seen in a release.
func (h *history) compareRelease(when, release string) {
	h.Helper()
	got, want := []string{}, map[string]bool{}
	for _, g := range list(h, h.pool, h.organization, postgres.GroupQuery{Release: release}) {
		got = append(got, g.ID)
	}
	for _, o := range h.applied {
		if o.Release == release {
			want[h.idOf(h.headOf(h.own(o)))] = true
		}
	}
	if slices.Sort(got); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
		h.Errorf("%s %q are found by %s, want %v", when, got, release, want)
	}
}

func (h *history) compareFacts() {
	got := map[string]int{}
	asSystem(h, h.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(h.Context(), `SELECT regexp_replace(type, '.*_', '') FROM facts WHERE organization = $1 AND type <> $2`, h.organization, contract.TypeErrorsChangeReported)
		if err != nil {
			return err
		}
		kinds, err := pgx.CollectRows(rows, pgx.RowTo[string])
		for _, kind := range kinds {
			got[kind]++
		}
		return err
	})
	for _, kind := range []string{"merged", "unmerged", "split", "assigned", "quiet", "reopened", "regressed", "unignored"} {
		if got[kind] < h.facts[kind] || got[kind] > h.facts[kind]+h.unsure[kind] {
			h.Errorf("%d facts that something was %s, want %d to %d", got[kind], kind, h.facts[kind], h.facts[kind]+h.unsure[kind])
		}
	}
}

// rebuild reads the log again, in the order of acceptance, with the decisions.
func (h *history) rebuild() {
	asSystem(h, h.pool, func(tx pgx.Tx) error {
		for _, table := range []string{"error_groups", "group_hashes", "occurrences", "group_packages", "releases"} {
			if _, err := tx.Exec(h.Context(), `DELETE FROM `+table+` WHERE organization = $1`, h.organization); err != nil {
				return err
			}
		}
		return nil
	})
	slices.SortStableFunc(h.applied, func(a, b grouping.Occurrence) int { return a.Accepted.Compare(b.Accepted) })
	for rest := h.applied; len(rest) > 0; {
		n := min(len(rest), 1+h.random.IntN(5))
		if err := h.count(rest[:n], false); err != nil {
			h.Fatal(err)
		}
		rest = rest[n:]
	}
}
