package kubernetes

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	batch "k8s.io/api/batch/v1"
	network "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	https   = 8443
	metrics = 9464
)

// Every pod is closed in both directions, except where policies open it.
func TestDefaultDeny(t *testing.T) {
	forVariants(t, func(t *testing.T, weir objects) {
		pods := workloads(t, weir)
		closed := map[network.PolicyType][]string{}
		for _, policy := range some[*network.NetworkPolicy](t, weir) {
			if len(policy.Spec.Ingress) == 0 && len(policy.Spec.Egress) == 0 {
				for _, direction := range policy.Spec.PolicyTypes {
					closed[direction] = append(closed[direction], selected(t, pods, &policy.Spec.PodSelector)...)
				}
			}
		}
		for _, w := range pods {
			if !slices.Contains(closed[network.PolicyTypeIngress], w.name) || !slices.Contains(closed[network.PolicyTypeEgress], w.name) {
				t.Errorf("%s is open", w.name)
			}
		}
	})
}

// Among the pods only the gateway reaches others: the modules, which
// communicate by events, reach none.
func TestTrafficBetweenPods(t *testing.T) {
	forVariants(t, func(t *testing.T, weir objects) {
		pods := workloads(t, weir)
		for _, from := range pods {
			for _, to := range pods {
				for _, port := range []int32{https, metrics} {
					want := from.name == "gateway" && to.name != "gateway" && to.serves && port == https
					if got := reaches(t, weir, from, to, port); got != want {
						t.Errorf("%s reaches %s at %d: %t", from.name, to.name, port, got)
					}
				}
			}
		}
	})
}

// Other pods of the cluster reach only the gateway.
func TestOthersReachTheGateway(t *testing.T) {
	forVariants(t, func(t *testing.T, weir objects) {
		for _, to := range workloads(t, weir) {
			for _, port := range []int32{https, metrics} {
				restricted := slices.ContainsFunc(some[*network.NetworkPolicy](t, weir), func(p *network.NetworkPolicy) bool {
					return p.Name == release+"-clients" && len(p.Spec.Ingress[0].From) > 0
				})
				want := to.name == "gateway" && port == https && !restricted
				if got := allowsIngress(t, weir, workload{name: "another"}, to, port); got != want {
					t.Errorf("another pod reaches %s at %d: %t", to.name, port, got)
				}
			}
		}
	})
}

// reaches reports whether policies allow a pod to reach another.
func reaches(t *testing.T, weir objects, from, to workload, port int32) bool {
	t.Helper()
	return allowsIngress(t, weir, from, to, port) && slices.ContainsFunc(of(t, weir, from), func(policy *network.NetworkPolicy) bool {
		return slices.ContainsFunc(policy.Spec.Egress, func(rule network.NetworkPolicyEgressRule) bool {
			return opens(rule.Ports, port) && among(t, rule.To, to)
		})
	})
}

// allowsIngress reports whether policies allow a pod to be reached by another.
func allowsIngress(t *testing.T, weir objects, from, to workload, port int32) bool {
	t.Helper()
	return slices.ContainsFunc(of(t, weir, to), func(policy *network.NetworkPolicy) bool {
		return slices.ContainsFunc(policy.Spec.Ingress, func(rule network.NetworkPolicyIngressRule) bool {
			return opens(rule.Ports, port) && among(t, rule.From, from)
		})
	})
}

// of returns the policies for a pod.
func of(t *testing.T, weir objects, w workload) (found []*network.NetworkPolicy) {
	t.Helper()
	for _, policy := range some[*network.NetworkPolicy](t, weir) {
		if matches(t, &policy.Spec.PodSelector, w) {
			found = append(found, policy)
		}
	}
	return found
}

func opens(ports []network.NetworkPolicyPort, port int32) bool {
	return slices.ContainsFunc(ports, func(p network.NetworkPolicyPort) bool { return p.Port == nil || p.Port.IntVal == port })
}

// among reports whether peers include a pod of this namespace. It
// assumes that no pod has the peers' addresses.
func among(t *testing.T, peers []network.NetworkPolicyPeer, w workload) bool {
	t.Helper()
	return len(peers) == 0 || slices.ContainsFunc(peers, func(peer network.NetworkPolicyPeer) bool {
		return peer.PodSelector != nil && peer.NamespaceSelector == nil && matches(t, peer.PodSelector, w)
	})
}

func matches(t *testing.T, by *meta.LabelSelector, w workload) bool {
	t.Helper()
	selector, err := meta.LabelSelectorAsSelector(by)
	must(t, err)
	return selector.Matches(labels.Set(w.Labels))
}

// Ports outside of the cluster.
const (
	names     = 53
	postgres  = 5432
	collector = 4318
)

// Each pod reaches only the outside ports that its settings name.
func TestEgress(t *testing.T) {
	kafka := []int32{9093, 9094}
	module := append(kafka, names, postgres, collector)
	want := map[string][]int32{
		"gateway": {names, collector, https}, "topics": append(kafka, names, collector),
		"ingest": append(slices.Clone(module), https), "ledger": module, "grouping": module, "tenants": append(module, 443, 465, 587),
	}
	weir := rendered(t, "testdata/everything.yaml")
	for _, w := range workloads(t, weir) {
		if strings.HasPrefix(w.name, "migrate-") {
			want[w.name] = []int32{names, postgres, collector}
		}
		checkWaysOut(t, weir, w, want[w.name])
	}
}

// At a first installation a job has only the policies that are hooks
// before it: these close its way out, so they must open what it needs.
func TestEgressOfTheFirstJobs(t *testing.T) {
	weir := rendered(t, "testdata/everything.yaml")
	for _, job := range some[*batch.Job](t, weir) {
		want := []int32{names, postgres}
		if job.Name == "topics" {
			want = []int32{names, 9093, 9094}
		}
		checkWaysOut(t, hooksBefore(t, weir, job), workload{job.Name, false, job.Spec.Template}, want)
	}
}

// hooksBefore returns the hooks that Helm creates before another.
func hooksBefore(t *testing.T, weir objects, hook client.Object) (found objects) {
	t.Helper()
	weight := func(of client.Object) int {
		number, err := strconv.Atoi(of.GetAnnotations()["helm.sh/hook-weight"])
		must(t, err)
		return number
	}
	for _, object := range weir {
		if object.GetAnnotations()["helm.sh/hook"] == hook.GetAnnotations()["helm.sh/hook"] && weight(object) < weight(hook) {
			found = append(found, object)
		}
	}
	return found
}

func checkWaysOut(t *testing.T, weir objects, w workload, want []int32) {
	t.Helper()
	open := map[int32]bool{}
	for _, policy := range of(t, weir, w) {
		for _, rule := range policy.Spec.Egress {
			for _, port := range rule.Ports {
				open[port.Port.IntVal] = true
			}
		}
	}
	if got := slices.Sorted(maps.Keys(open)); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("%s gets out to %v, want %v", w.name, got, want)
	}
}
