package kubernetes

import (
	"regexp"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// Every pod is one that the standard "restricted" of Kubernetes
// lets in, and writes nowhere but to its volumes.
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

// Nothing takes more of a node than it is given, and its image has a version.
func TestLimits(t *testing.T) {
	pinned := regexp.MustCompile(`^[a-z0-9./-]+:v\d+\.\d+\.\d+$`)
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

// Services are asked at a port that they have: whether they live, and
// whether they serve.
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

// port is the number of a port that a pod listens at; 0: at none of that name.
func port(w workload, named intstr.IntOrString) int32 {
	for _, p := range w.container().Ports {
		if p.Name == named.StrVal || named.StrVal == "" && p.ContainerPort == named.IntVal {
			return p.ContainerPort
		}
	}
	return 0
}

// Nobody is killed while requests may be under way, and nobody is sent new
// ones: the pause before the end lets proxies learn of it.
func TestDrain(t *testing.T) {
	const margin = 5 * time.Second
	forVariants(t, func(t *testing.T, weir objects) {
		for _, w := range workloads(t, weir) {
			if !w.serves {
				continue
			}
			drain, err := time.ParseDuration(w.variable("WEIR_DRAIN"))
			must(t, err)
			pause := time.Duration(w.container().Lifecycle.PreStop.Sleep.Seconds) * time.Second
			if grace := time.Duration(*w.Spec.TerminationGracePeriodSeconds) * time.Second; pause == 0 || grace < pause+drain+margin {
				t.Errorf("%s is killed after %v, and drains for %v after %v", w.name, grace, drain, pause)
			}
		}
	})
}
