package kubernetes

import (
	"slices"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// selected returns the workloads whose pods match a selector.
func selected(t *testing.T, among []workload, by *meta.LabelSelector) (names []string) {
	t.Helper()
	selector, err := meta.LabelSelectorAsSelector(by)
	must(t, err)
	for _, w := range among {
		if selector.Matches(labels.Set(w.Labels)) {
			names = append(names, w.name)
		}
	}
	return names
}

// Deployments, services, budgets and constraints select only the pods
// of the service in their name.
func TestSelectors(t *testing.T) {
	forVariants(t, func(t *testing.T, weir objects) {
		pods := workloads(t, weir)
		check := func(what, name string, by *meta.LabelSelector) {
			if found := selected(t, pods, by); !slices.Equal(found, []string{name}) {
				t.Errorf("%s %s is about %q", what, name, found)
			}
		}
		for _, deployment := range some[*apps.Deployment](t, weir) {
			check("deployment", deployment.Name, deployment.Spec.Selector)
			for _, constraint := range deployment.Spec.Template.Spec.TopologySpreadConstraints {
				check("spread of", deployment.Name, constraint.LabelSelector)
			}
		}
		for _, service := range some[*core.Service](t, weir) {
			check("service", service.Name, &meta.LabelSelector{MatchLabels: service.Spec.Selector})
		}
		for _, budget := range some[*policy.PodDisruptionBudget](t, weir) {
			check("budget", budget.Name, budget.Spec.Selector)
		}
	})
}

// Selectors have no version: they can't be changed.
func TestSelectorsNameNoVersion(t *testing.T) {
	for _, deployment := range some[*apps.Deployment](t, rendered(t, "testdata/plain.yaml")) {
		for label := range deployment.Spec.Selector.MatchLabels {
			if label == "app.kubernetes.io/version" || label == "helm.sh/chart" {
				t.Errorf("%s selects by %s", deployment.Name, label)
			}
		}
	}
}

// A service's port is one of its pods'.
func TestPorts(t *testing.T) {
	forVariants(t, func(t *testing.T, weir objects) {
		for _, service := range some[*core.Service](t, weir) {
			for _, w := range workloads(t, weir) {
				if w.name == service.Name && port(w, service.Spec.Ports[0].TargetPort) != https {
					t.Errorf("%s leads to %v", service.Name, service.Spec.Ports)
				}
			}
		}
	})
}

// scalers returns the ranges of scaled deployments, by name.
func scalers(weir objects) map[string]autoscaling.HorizontalPodAutoscalerSpec {
	found := map[string]autoscaling.HorizontalPodAutoscalerSpec{}
	for _, scaler := range all[*autoscaling.HorizontalPodAutoscaler](weir) {
		found[scaler.Spec.ScaleTargetRef.Name] = scaler.Spec
	}
	return found
}

// With lag to scale by, the consumers of the log are scaled, each by its
// own group, and never below the number that survives the loss of one.
func TestScaling(t *testing.T) {
	scaled := scalers(rendered(t, "testdata/everything.yaml"))
	for service, group := range map[string]string{"ingest": "ingest.log-store", "ledger": "ledger.quota", "grouping": "grouping.clusters"} {
		byLag := slices.IndexFunc(scaled[service].Metrics, func(m autoscaling.MetricSpec) bool {
			return m.External != nil && m.External.Metric.Name == "weir_bus_lag_records" && m.External.Metric.Selector.MatchLabels["group"] == group
		})
		if byLag < 0 || scaled[service].MinReplicas == nil || *scaled[service].MinReplicas < 2 {
			t.Errorf("%s is not scaled by the lag of %s: %v", service, group, scaled[service])
		}
	}
	if len(scaled) != 3 {
		t.Errorf("%d services are scaled", len(scaled))
	}
}

// Prometheus scrapes every service, and labels its metrics as
// the alerts expect.
func TestEverythingIsScraped(t *testing.T) {
	weir := rendered(t, "testdata/everything.yaml")
	monitor := some[*monitoring.PodMonitor](t, weir)[0]
	found := selected(t, workloads(t, weir), &monitor.Spec.Selector)
	for _, w := range workloads(t, weir) {
		if w.serves && (!slices.Contains(found, w.name) || w.Labels[monitor.Spec.JobLabel] != "weir") {
			t.Errorf("%s is not asked, or not as weir", w.name)
		}
	}
	endpoint := monitor.Spec.PodMetricsEndpoints[0]
	if !endpoint.HonorLabels || endpoint.Port == nil || *endpoint.Port != "metrics" {
		t.Errorf("metrics are taken from %v, own labels kept: %t", endpoint.Port, endpoint.HonorLabels)
	}
}
