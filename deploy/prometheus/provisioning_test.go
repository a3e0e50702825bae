package prometheus

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

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
