package prometheus

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	grafana "github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"go.yaml.in/yaml/v4"
)

// Grafana's own types take every dashboard: no field is unknown,
// of another type or missing, in panels and queries too.
func TestGrafanaTakesDashboards(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	for _, file := range glob(t, dashboards) {
		if err := decode(text(t, file)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// Grafana's types refuse a dashboard that is broken anywhere.
func TestGrafanaRefusesBrokenDashboards(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	whole := text(t, strings.Replace(dashboards, "*", "weir", 1))
	for name, broken := range map[string][2]string{
		"a field of a board":   {`"schemaVersion"`, `"schema"`},
		"a type of a board":    {`"editable": false`, `"editable": "false"`},
		"a field of a panel":   {`"gridPos"`, `"grid"`},
		"a kind of a panel":    {`"type": "timeseries"`, `"type": "timeline"`},
		"no kind of a panel":   {`"type": "timeseries",`, ``},
		"an option":            {`"displayMode": "list"`, `"mode": "list"`},
		"a unit of a field":    {`"unit"`, `"units"`},
		"a style of a field":   {`"fillOpacity"`, `"opacity"`},
		"a field of a query":   {`"legendFormat"`, `"legend"`},
		"a type of a query":    {`"refId": "A"`, `"refId": 1`},
		"a place":              {`"w": 24`, `"w": 0`},
		"a name of a template": {`"list": []`, `"list": [{"type": "query"}]`},
	} {
		changed := strings.ReplaceAll(whole, broken[0], broken[1])
		if changed == whole {
			t.Errorf("%s: %q is nowhere", name, broken[0])
		}
		if err := decode(changed); err == nil {
			t.Errorf("%s: Grafana takes %q for %q", name, broken[1], broken[0])
		}
	}
}

// decode reads a dashboard as strictly as Grafana's types can. By themselves
// they let a panel's units be anything, and a kind that they don't know.
func decode(content string) error {
	var board grafana.Dashboard
	if err := board.UnmarshalJSONStrict([]byte(content)); err != nil {
		return err
	}
	var raw struct {
		Panels []struct {
			Title, Type string
			FieldConfig json.RawMessage
		}
	}
	errs := []error{board.Validate(), json.Unmarshal([]byte(content), &raw)}
	for _, panel := range raw.Panels {
		if _, known := cog.ConfigForPanelcfgVariant(panel.Type); !known && panel.Type != "row" {
			errs = append(errs, fmt.Errorf("%q is of the kind %q, which is none", panel.Title, panel.Type))
		}
		if err := new(grafana.FieldConfigSource).UnmarshalJSONStrict(panel.FieldConfig); err != nil {
			errs = append(errs, fmt.Errorf("%q: %w", panel.Title, err))
		}
	}
	return errors.Join(errs...)
}

// What Grafana is given at its start has no field that it doesn't know. Its
// types for these are not published: these are the fields of its manual.
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
