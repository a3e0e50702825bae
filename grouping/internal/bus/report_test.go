package bus_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/bus"
	"github.com/weirlog/weir/grouping/internal/groupingtest"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/ruletext"
)

// reported are the changes that the audit was told of since the last call.
func (w *world) reported() (changes []contract.ChangeReported) {
	w.t.Helper()
	err := pg.InTxAsSystem(w.t.Context(), w.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(w.t.Context(), `DELETE FROM facts WHERE type = $1 RETURNING body`, contract.TypeErrorsChangeReported)
		if err != nil {
			return err
		}
		changes, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (c contract.ChangeReported, err error) { return c, row.Scan(&c) })
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return changes
}

// What people change of the errors of a project is in the audit, each once: who, what, before and after. What changes
// nothing is not, and neither is what Weir itself decides.
func TestChangesAreReported(t *testing.T) {
	w := newWorld(t)
	w.come(1, 2, 3)
	var ids []string
	for _, g := range groupsOf(t, w.pool, "acme") {
		ids = append(ids, g.ID)
	}
	slices.Sort(ids)
	rules := func(text string, restore int64) func() error {
		return func() error {
			_, err := w.Rules.Set(t.Context(), w.request(), ruletext.Wish{Project: "shop", Text: text, Restore: restore, Note: "why"})
			return err
		}
	}
	decide := func(wanted groups.DecisionRequest, of ...string) func() error {
		return func() error { _, err := w.Decisions.DecideEach(t.Context(), w.request(), of, wanted); return err }
	}
	status := func(to grouping.Status) groups.DecisionRequest {
		return groups.DecisionRequest{Command: grouping.Command{Status: to}}
	}
	var alert *postgres.Alert
	var m postgres.SourceMap
	upload := func() (postgres.SourceMap, error) {
		kept, _, err := w.SourceMaps.Upload(t.Context(), w.request(), "shop", groups.Upload{Release: "1.0", Name: "app.js",
			Text: []byte(`{"version":3,"sources":["src/a.ts"],"names":[],"mappings":"AAAA"}`)})
		return kept, err
	}
	for _, c := range []struct {
		name          string
		change        func() error
		action        string // "": nothing is reported
		target        string
		before, after map[string]string
	}{
		{"the first rules", rules("scrub email\n# pay\nscrub ip", 0), "error_rules.set", "shop", nil,
			map[string]string{"version": "1", "added": "scrub email\n# pay\nscrub ip", "note": "why"}},
		{"the same again", rules("scrub email\n# pay\nscrub ip", 0), "", "", nil, nil},
		{"a rule replaced", rules("scrub email\nscrub card", 0), "error_rules.set", "shop", map[string]string{"version": "1"},
			map[string]string{"version": "2", "added": "scrub card", "removed": "# pay\nscrub ip", "note": "why"}},
		{"restored", rules("", 1), "error_rules.set", "shop", map[string]string{"version": "2"},
			map[string]string{"version": "3", "added": "# pay\nscrub ip", "removed": "scrub card", "note": "why", "restored_version": "1"}},
		{"long rules", rules("#"+strings.Repeat("ä", 3000), 0), "error_rules.set", "shop", map[string]string{"version": "3"},
			map[string]string{"version": "4", "added": "#" + strings.Repeat("ä", 2047) + "… and more", "removed": "scrub email\n# pay\nscrub ip", "note": "why"}},
		{"owners", func() error {
			_, err := w.Owners.Set(t.Context(), w.request(), "shop", grouping.Owners{{Path: "pay/*", Assignee: "payments"}}, nil)
			return err
		}, "error_owners.set", "shop", nil, map[string]string{"added": "path:pay/* payments"}},
		{"settings", func() error {
			_, err := w.Settings.Set(t.Context(), w.request(), "shop", postgres.Setting{Paths: grouping.Paths{Release: []string{"v"}}, ArchiveDays: 7}, nil)
			return err
		}, "error_settings.set", "shop",
			map[string]string{"release": "release, version, service.version", "service": "service, service.name", "user": "user.id, user", "host": "host, host.name"},
			map[string]string{"release": "v", "archived_after_days": "7"}},
		{"an alert", func() error { alert = w.alert(nil); return nil }, "error_alert.created", "", nil, nil},
		{"muted", func() error {
			_, err := w.Alerts.Mute(t.Context(), w.request(), alert.ID, w.now.Add(time.Hour))
			return err
		}, "error_alert.changed", "", nil, nil},
		{"muted in the same way", func() error {
			_, err := w.Alerts.Mute(t.Context(), w.request(), alert.ID, w.now.Add(time.Hour-time.Second))
			return err
		}, "", "", nil, nil},
		{"deleted", func() error { _, err := w.Alerts.Delete(t.Context(), w.request(), "shop", alert.ID, 0); return err }, "error_alert.deleted", "", nil, nil},
		{"a source map", func() (err error) { m, err = upload(); return err }, "error_source_map.uploaded", "", nil,
			map[string]string{"release": "1.0", "size": "65 bytes", "sha256": "f58ddf00b52b1f0709ec62c67c8c685b579d5c332e4f29af2faeaadd05a56878"}},
		{"the same map", func() error { _, err := upload(); return err }, "", "", nil, nil},
		{"no map more", func() error { return w.SourceMaps.Delete(t.Context(), w.request(), "shop", m.ID) }, "error_source_map.deleted", "",
			map[string]string{"release": "1.0", "size": "65 bytes", "sha256": "f58ddf00b52b1f0709ec62c67c8c685b579d5c332e4f29af2faeaadd05a56878"}, nil},
		{"one resolved", decide(status(grouping.Resolved), ids[0]), "error_group.resolved", ids[0], map[string]string{"status": "unresolved"},
			map[string]string{"status": "resolved", "version": "1"}},
		{"resolved again", decide(status(grouping.Resolved), ids[0]), "", "", nil, nil},
		{"given to a team", decide(groups.DecisionRequest{Command: grouping.Command{Assign: &grouping.Assignee{ID: "carts"}}}, ids[0]), "error_group.assigned", ids[0],
			map[string]string{"assignee": "nobody"}, map[string]string{"assignee": "carts", "version": "2"}},
		{"taken from it", decide(groups.DecisionRequest{Command: grouping.Command{Assign: &grouping.Assignee{}}}, ids[0]), "error_group.assigned", ids[0],
			map[string]string{"assignee": "carts"}, map[string]string{"assignee": "nobody", "version": "3"}},
		{"linked", decide(groups.DecisionRequest{Command: grouping.Command{Links: &[]grouping.Link{{URL: "https://tracker.example/7?token=secret#top"}}}}, ids[0]), "error_group.linked", ids[0], nil, map[string]string{"link": "https://tracker.example/7", "version": "4"}},
		{"many ignored", decide(groups.DecisionRequest{Command: grouping.Command{Status: grouping.Ignored, Until: grouping.Until{Count: 5}}}, slices.Clone(ids)...),
			"error_group.ignored", "shop", nil, map[string]string{"until_errors": "5", "error_groups": "3: " + ids[0] + ", " + ids[1] + ", " + ids[2]}},
		{"until errors came", func() error { w.come(1, 1, 1, 1, 1); return nil }, "", "", nil, nil},
		{"merged", func() error {
			_, err := w.Merges.Merge(t.Context(), w.request(), groups.MergeRequest{Into: ids[0], Groups: ids[1:]})
			return err
		}, "error_group.merged", ids[0], nil, nil},
	} {
		w.now = w.now.Add(time.Second)
		if err := c.change(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got := w.reported()
		if c.action == "" {
			if len(got) > 0 {
				t.Errorf("%s: reported %+v", c.name, got)
			}
			continue
		}
		if len(got) != 1 || got[0].Action != c.action || got[0].Actor != "mem_1" ||
			got[0].Address != "192.0.2.7" || got[0].Client != "curl/8.5.0" || got[0].Organization != "acme" || got[0].Project != "shop" ||
			c.target != "" && (got[0].Target.ID != c.target || got[0].Target.Name != "") || !got[0].At.Equal(w.now) {
			t.Errorf("%s: reported %+v", c.name, got)
			continue
		}
		if c.after != nil && (!maps.Equal(got[0].Before, c.before) || !maps.Equal(got[0].After, c.after)) {
			t.Errorf("%s: %q became %q", c.name, got[0].Before, got[0].After)
		}
	}
}

// What is decided about many at once is a line for each outcome.
func TestEachOutcomeIsReported(t *testing.T) {
	w := newWorld(t)
	w.come(1, 2, 3, 4, 5)
	var changes []postgres.Change
	want := map[string]int{"carts": 2, "payments": 3}
	for i, g := range groupsOf(t, w.pool, "acme") {
		team := []string{"carts", "payments"}[(i+1)%2]
		changes = append(changes, postgres.Change{Organization: "acme", Group: g, By: w.request().By, Decision: grouping.Decision{
			Kind: grouping.WasAssigned, At: w.now, Assignee: grouping.Assignee{ID: team},
		}})
	}
	if err := pg.InTxAsSystem(t.Context(), w.pool, func(tx pgx.Tx) error { return bus.Announce(t.Context(), tx, changes) }); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, c := range w.reported() {
		ids, _, _ := strings.Cut(c.After["error_groups"], ":")
		got[c.After["assignee"]], _ = strconv.Atoi(ids)
	}
	if !maps.Equal(got, want) {
		t.Errorf("reported %v, want %v", got, want)
	}
}

// What is ignored until it affects users is open again once their errors were counted, in whatever transactions.
func TestIgnoredUntilUsersCome(t *testing.T) {
	w := newWorld(t)
	w.come(1)
	id := groupsOf(t, w.pool, "acme")[0].ID
	wanted := groups.DecisionRequest{Command: grouping.Command{Status: grouping.Ignored, Until: grouping.Until{Users: 3}}}
	if _, err := w.Decisions.Decide(t.Context(), w.request(), id, wanted); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		user string
		want grouping.Status
	}{{"alice", grouping.Ignored}, {"bob", grouping.Ignored}, {"alice", grouping.Ignored}, {"carol", grouping.Unresolved}} {
		w.now = w.now.Add(time.Hour)
		w.consume(w.accept(w.now, strings.ReplaceAll(groupingtest.Failure(1), "alice", step.user)))
		if got := groupsOf(t, w.pool, "acme")[0]; got.Status != step.want {
			t.Errorf("after %s: %s", step.user, got.Status)
		}
	}
}

// A group says that its last error is of a release that cannot be ordered, as long as that decides.
func TestUnorderedReleaseIsSaid(t *testing.T) {
	w := newWorld(t)
	come := func(release string) {
		w.now = w.now.Add(time.Minute)
		w.consume(w.accept(w.now, strings.ReplaceAll(groupingtest.Failure(1), `"user":"alice"`, `"release":"`+release+`"`)))
	}
	come("1.4")
	id := groupsOf(t, w.pool, "acme")[0].ID
	wanted := groups.DecisionRequest{Command: grouping.Command{Status: grouping.Resolved, Resolution: grouping.Resolution{Release: "1.5"}}}
	if _, err := w.Decisions.Decide(t.Context(), w.request(), id, wanted); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ release, want string }{{"1.4", ""}, {"build-77", "build-77"}, {"1.5", ""}} {
		come(step.release)
		found, err := w.Groups.Detail(t.Context(), member, id)
		if err != nil || found.Unordered != step.want {
			t.Errorf("after an error of %s: %q is said, %v", step.release, found.Unordered, err)
		}
	}
}
