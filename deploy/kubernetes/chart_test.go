package kubernetes

import (
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"
)

// Each variant has only types and fields that exist, and all five services.
func TestEverythingIsKnown(t *testing.T) {
	forVariants(t, func(t *testing.T, weir objects) {
		names := map[string]bool{}
		for _, object := range weir {
			kind := object.GetObjectKind().GroupVersionKind().Kind
			if name := kind + " " + object.GetName(); names[name] {
				t.Errorf("%s is there twice", name)
			} else {
				names[name] = true
			}
			if object.GetLabels()["app.kubernetes.io/part-of"] != "weir" {
				t.Errorf("%s %s does not say whose it is: %v", kind, object.GetName(), object.GetLabels())
			}
		}
		for _, service := range []string{"gateway", "ingest", "ledger", "grouping", "tenants"} {
			if !names["Deployment "+service] || !names["Service "+service] || !names["PodDisruptionBudget "+service] {
				t.Errorf("%s is not deployed, reached, or kept", service)
			}
		}
	})
}

// Missing, misspelled and wrongly typed values are refused by name.
func TestWrongValuesAreRefused(t *testing.T) {
	const version, brokers = "image: {version: v1.4.0}\n", "brokers: {addresses: [\"kafka:9092\"]}\n"
	for values, complaint := range map[string]string{
		brokers: "image.version is empty",
		version: "brokers.addresses is empty",
		version + "brokers: {addresses: [kafka]}":          "/brokers/addresses/0",
		brokers + "image: {version: latest}":               "/image/version",
		version + brokers + "broker: {}":                   "broker",
		version + brokers + "services: {ingest: {cpu: 1}}": "/services/ingest",
		version + brokers + "settings: {WEIR_DRAIN: 45}":   "/settings/WEIR_DRAIN",
	} {
		given := map[string]any{}
		must(t, yaml.Unmarshal([]byte(values), &given))
		if _, err := render(given); err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%q should be refused for %q: %v", values, complaint, err)
		}
	}
}

// A setting in the values overrides the chart's own, in its service.
func TestSettingsGoBefore(t *testing.T) {
	weir := rendered(t, "testdata/everything.yaml")
	for _, w := range workloads(t, weir) {
		if level := w.variable("WEIR_LOG_LEVEL"); w.serves != (level == "warn") {
			t.Errorf("%s logs %q", w.name, level)
		}
		if requests := w.variable("WEIR_INGEST_REQUESTS"); (w.name == "ingest") != (requests == "512") {
			t.Errorf("%s takes %q requests", w.name, requests)
		}
	}
}

// A scaled service begins with the fewest replicas of its scaler: without a
// number Kubernetes would stop all but one.
func TestScaledReplicas(t *testing.T) {
	forVariants(t, func(t *testing.T, weir objects) {
		scaled := scalers(weir)
		for _, deployment := range some[*apps.Deployment](t, weir) {
			scaler, is := scaled[deployment.Name]
			if deployment.Spec.Replicas == nil || is && *deployment.Spec.Replicas != *scaler.MinReplicas {
				t.Errorf("%s: scaled %t, replicas %v", deployment.Name, is, deployment.Spec.Replicas)
			}
			delete(scaled, deployment.Name)
		}
		for name := range scaled {
			t.Errorf("a scaler is there for %s, which is not", name)
		}
	})
}

// A schema is migrated by a job if a separate role owns it, and else
// by the service.
func TestMigrations(t *testing.T) {
	for file, want := range map[string]string{
		"testdata/plain.yaml":        "migrate-grouping migrate-ingest migrate-ledger migrate-tenants topics",
		"testdata/certificates.yaml": "migrate-grouping migrate-ledger migrate-tenants",
		"companions/values.yaml":     "topics",
	} {
		var jobs []string
		for _, job := range all[*batch.Job](rendered(t, file)) {
			jobs = append(jobs, job.Name)
			if job.Annotations["helm.sh/hook"] != "pre-install,pre-upgrade" {
				t.Errorf("%s: %s does not run before: %v", file, job.Name, job.Annotations)
			}
		}
		if slices.Sort(jobs); strings.Join(jobs, " ") != want {
			t.Errorf("%s: jobs %q, want %q", file, jobs, want)
		}
	}
}
