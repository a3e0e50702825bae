package kubernetes

import (
	"regexp"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// Every pod meets the standard "restricted" of Kubernetes, and writes
// only to its volumes.
func TestRights(t *testing.T) {
	standard, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	must(t, err)
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	forVariants(t, func(t *testing.T, weir objects) {
		for _, w := range workloads(t, weir) {
			verdict := policy.AggregateCheckResults(standard.EvaluatePod(restricted, &w.ObjectMeta, &w.Spec))
			if !verdict.Allowed {
				t.Errorf("%s: %s", w.name, verdict.ForbiddenDetail())
			}
			if readOnly := w.container().SecurityContext.ReadOnlyRootFilesystem; readOnly == nil || !*readOnly {
				t.Errorf("%s can write to its root", w.name)
			}
			if token := w.Spec.AutomountServiceAccountToken; token == nil || *token {
				t.Errorf("%s is given a token for the API server", w.name)
			}
		}
	})
}

// Every container has limits, and its image a version or a digest.
func TestLimits(t *testing.T) {
	pinned := regexp.MustCompile(`^[a-z0-9./-]+(:v\d+\.\d+\.\d+|@sha256:[0-9a-f]{64})$`)
	forVariants(t, func(t *testing.T, weir objects) {
		for _, w := range workloads(t, weir) {
			given := w.container().Resources
			if given.Limits.Memory().IsZero() || given.Limits.StorageEphemeral().IsZero() || given.Requests.Cpu().IsZero() || given.Requests.Memory().IsZero() {
				t.Errorf("%s has no bounds: %v", w.name, given)
			}
			for _, volume := range w.Spec.Volumes {
				if volume.EmptyDir != nil && (volume.EmptyDir.SizeLimit == nil || volume.EmptyDir.SizeLimit.Cmp(*given.Limits.StorageEphemeral()) >= 0) {
					t.Errorf("%s: the volume %s may fill what the pod may write", w.name, volume.Name)
				}
			}
			if !pinned.MatchString(w.container().Image) {
				t.Errorf("%s: the image %q has no version", w.name, w.container().Image)
			}
		}
	})
}

// Pods run where the values say. Replicas are on different nodes by default.
func TestScheduling(t *testing.T) {
	for _, w := range workloads(t, rendered(t, "testdata/everything.yaml")) {
		spec := w.Spec
		if spec.NodeSelector["pool"] != "logs" || len(spec.Tolerations) != 1 || spec.Affinity == nil || spec.PriorityClassName != "system-cluster-critical" {
			t.Errorf("%s runs elsewhere: %v", w.name, spec)
		}
		if digested := strings.Contains(w.container().Image, "@sha256:abab"); digested != (w.name == "ingest") {
			t.Errorf("%s has the image %s", w.name, w.container().Image)
		}
		if w.serves && w.Annotations["example.org/team"] != "logs" {
			t.Errorf("%s has the annotations %v", w.name, w.Annotations)
		}
	}
	for file, want := range map[string][2]core.UnsatisfiableConstraintAction{
		"testdata/plain.yaml":      {core.DoNotSchedule, core.ScheduleAnyway},
		"testdata/everything.yaml": {core.ScheduleAnyway, core.DoNotSchedule},
	} {
		for _, w := range workloads(t, rendered(t, file)) {
			for _, spread := range w.Spec.TopologySpreadConstraints {
				i := 0
				if spread.TopologyKey == core.LabelTopologyZone {
					i = 1
				}
				if spread.WhenUnsatisfiable != want[i] {
					t.Errorf("%s: %s is spread over %s: %s", file, w.name, spread.TopologyKey, spread.WhenUnsatisfiable)
				}
			}
		}
	}
}

// Services have probes at one of their ports: for liveness, and for readiness.
func TestProbes(t *testing.T) {
	forVariants(t, func(t *testing.T, weir objects) {
		for _, w := range workloads(t, weir) {
			if !w.serves {
				continue
			}
			ready := "/readyz"
			if w.name == "gateway" {
				ready = "/healthz"
			}
			c := w.container()
			checkProbe(t, w, c.StartupProbe, "/healthz")
			checkProbe(t, w, c.LivenessProbe, "/healthz")
			checkProbe(t, w, c.ReadinessProbe, ready)
		}
	})
}

func checkProbe(t *testing.T, w workload, probe *core.Probe, path string) {
	t.Helper()
	if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Scheme != core.URISchemeHTTPS {
		t.Fatalf("%s is not asked for %s: %v", w.name, path, probe)
	}
	if port(w, probe.HTTPGet.Port) == 0 {
		t.Errorf("%s is asked at %s, a port that it has not", w.name, probe.HTTPGet.Port.StrVal)
	}
}

// port returns the number of a pod's port; 0 without one of that name.
func port(w workload, named intstr.IntOrString) int32 {
	for _, p := range w.container().Ports {
		if p.Name == named.StrVal || named.StrVal == "" && p.ContainerPort == named.IntVal {
			return p.ContainerPort
		}
	}
	return 0
}

// No pod is killed while requests may be in flight, or gets new ones:
// while it leaves, proxies remove it.
func TestDrain(t *testing.T) {
	const margin = 5 * time.Second
	forVariants(t, func(t *testing.T, weir objects) {
		for _, w := range workloads(t, weir) {
			if !w.serves {
				continue
			}
			drain, err := time.ParseDuration(w.variable("WEIR_DRAIN"))
			must(t, err)
			leave, err := time.ParseDuration(w.variable("WEIR_LEAVE"))
			must(t, err)
			if grace := time.Duration(*w.Spec.TerminationGracePeriodSeconds) * time.Second; leave == 0 || grace < leave+drain+margin {
				t.Errorf("%s is killed after %v, and drains for %v after %v", w.name, grace, drain, leave)
			}
		}
	})
}
