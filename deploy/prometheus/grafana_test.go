//go:build grafana

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
)

// Grafana's own types accept every dashboard: no field is unknown, of
// another type or missing, in panels and queries too.
func TestGrafanaTakesDashboards(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	for _, file := range glob(t, dashboards) {
		if err := decode(text(t, file)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// Grafana's types refuse a dashboard with any fault.
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

// decode reads a dashboard as strictly as Grafana's types can. They
// accept any units of a panel, and an unknown kind.
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
