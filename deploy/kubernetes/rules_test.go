package kubernetes

import (
	"os"
	"reflect"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// The rules are those of deploy/prometheus, in strictly the
// Prometheus Operator's form.
func TestRulesAreThoseOfPrometheus(t *testing.T) {
	given := map[string]monitoring.PrometheusRuleSpec{}
	for _, rule := range some[*monitoring.PrometheusRule](t, rendered(t, "testdata/everything.yaml")) {
		given[rule.Name] = rule.Spec
	}
	for _, file := range []string{"slo", "alerts"} {
		var want monitoring.PrometheusRuleSpec
		must(t, yaml.UnmarshalStrict(read(t, "../prometheus/"+file+".yaml"), &want))
		if len(want.Groups) == 0 || !reflect.DeepEqual(given[release+"-"+file], want) {
			t.Errorf("%s.yaml became other rules", file)
		}
	}
}

// The dashboards are those of deploy/compose, to the byte.
func TestDashboardsAreThoseOfCompose(t *testing.T) {
	const dir = "../compose/grafana/dashboards"
	files, err := os.ReadDir(dir)
	must(t, err)
	given := some[*core.ConfigMap](t, rendered(t, "testdata/everything.yaml"))[0].Data
	for _, file := range files {
		if file.Name() != "weir.yaml" && given[file.Name()] != string(read(t, dir+"/"+file.Name())) {
			t.Errorf("%s is not given, or another", file.Name())
		}
	}
}
