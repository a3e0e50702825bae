package prometheus

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
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

// Grafana's provisioning files have only known fields. Its types for
// them are not published: these are the fields of its manual.
func TestGrafanaIsProvisioned(t *testing.T) {
	var sources struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct {
			Name, UID, Type, URL string
			IsDefault            bool `yaml:"isDefault"`
			Editable             bool
		}
	}
	strictly(t, "../compose/grafana/datasources/prometheus.yaml", &sources)
	var boards struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name, Type     string
			AllowUIUpdates bool `yaml:"allowUiUpdates"`
			Options        struct{ Path string }
		}
	}
	strictly(t, "../compose/grafana/dashboards/weir.yaml", &boards)
	if sources.APIVersion != 1 || boards.APIVersion != 1 || len(sources.Datasources) != 1 || len(boards.Providers) != 1 {
		t.Fatalf("Grafana is given %+v and %+v", sources, boards)
	}
	machine := text(t, "../compose/compose.yaml")
	for _, needed := range []string{
		"  " + strings.TrimSuffix(strings.TrimPrefix(sources.Datasources[0].URL, "http://"), ":9090") + ":\n",
		"./grafana:" + strings.TrimSuffix(boards.Providers[0].Options.Path, "/dashboards") + ":ro",
	} {
		if !strings.Contains(machine, needed) {
			t.Errorf("Grafana goes by %q, which compose.yaml lacks", needed)
		}
	}
}

func strictly(t *testing.T, file string, into any) {
	t.Helper()
	decoder := yaml.NewDecoder(strings.NewReader(text(t, file)))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		t.Errorf("%s: %v", file, err)
	}
}
