package prometheus

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const dashboards = "../compose/grafana/dashboards/*.json"

// A dashboard is the part of Grafana's format that the tests read.
type dashboard struct {
	UID           string
	Title         string
	SchemaVersion int
	Editable      *bool
	Tags          []string
	Panels        []panel
}

type panel struct {
	ID          int
	Type        string
	Title       string
	Description string
	GridPos     struct{ X, Y, W, H int }
	Datasource  struct{ UID string }
	Targets     []struct{ RefID, Expr, LegendFormat string }
}

func readDashboard(t *testing.T, file string) (read dashboard) {
	t.Helper()
	if err := json.Unmarshal([]byte(text(t, file)), &read); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return read
}

// Grafana accepts every dashboard: each has its own id and title, and
// can be changed only here.
func TestDashboardsAreWhole(t *testing.T) {
	titles, source := map[string]string{}, datasource(t)
	for _, file := range glob(t, dashboards) {
		board := readDashboard(t, file)
		for _, own := range []string{"uid " + board.UID, "title " + board.Title} {
			if other, taken := titles[own]; taken {
				t.Errorf("%s and %s have the same %s", file, other, own)
			}
			titles[own] = file
		}
		if want := strings.TrimSuffix(filepath.Base(file), ".json"); board.UID != want || board.Title == "" || board.SchemaVersion < 41 {
			t.Errorf("%s: uid %q, title %q, schema %d", file, board.UID, board.Title, board.SchemaVersion)
		}
		if board.Editable == nil || *board.Editable || len(board.Tags) == 0 {
			t.Errorf("%s: editable %v, tags %q", file, board.Editable, board.Tags)
		}
		checkPanels(t, file, board.Panels, source)
	}
}

// datasource returns the uid of Grafana's data source.
func datasource(t *testing.T) string {
	t.Helper()
	var given struct{ Datasources []struct{ UID, Type string } }
	unmarshal(t, "../compose/grafana/datasources/prometheus.yaml", &given)
	if len(given.Datasources) != 1 || given.Datasources[0].Type != "prometheus" {
		t.Fatalf("Grafana is given %+v", given.Datasources)
	}
	return given.Datasources[0].UID
}

// checkPanels reports panels that share an id or a place, and those
// without a query or data source.
func checkPanels(t *testing.T, file string, panels []panel, source string) {
	t.Helper()
	ids, places := map[int]bool{}, map[[2]int]string{}
	for _, p := range panels {
		if p.ID == 0 || ids[p.ID] || p.Title == "" {
			t.Errorf("%s: the panel %q has the id %d of another, or none", file, p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := places[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s: %q lies over %q, or outside", file, p.Title, other)
				}
				places[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" || p.Type == "text" || p.Type == "alertlist" {
			continue
		}
		if p.Datasource.UID != source || len(p.Targets) == 0 || p.Description == "" {
			t.Errorf("%s: %q asks %q for %v, described %q", file, p.Title, p.Datasource.UID, p.Targets, p.Description)
		}
	}
}

// No dashboard shows one tenant another's data: no metric names a
// tenant, and no query asks for one.
func TestDashboardsNameNoTenant(t *testing.T) {
	tenant := regexp.MustCompile(`\b(organization|project|tenant)\b`)
	for _, file := range glob(t, dashboards) {
		for _, p := range readDashboard(t, file).Panels {
			for _, target := range p.Targets {
				if tenant.MatchString(target.Expr) || tenant.MatchString(target.LegendFormat) {
					t.Errorf("%s: %q names a tenant: %s", file, p.Title, target.Expr)
				}
			}
		}
	}
}
