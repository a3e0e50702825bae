package kubernetes

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/strvals"
	batch "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

const page = "../docs/kubernetes.md"

// commands returns the lines of a page's blocks that begin with a program.
func commands(t *testing.T, program string) (found []string) {
	t.Helper()
	for _, block := range blocks.FindAllStringSubmatch(string(read(t, page)), -1) {
		for line := range strings.Lines(strings.ReplaceAll(block[2], "\\\n", " ")) {
			if strings.HasPrefix(strings.TrimSpace(line), program+" ") {
				found = append(found, strings.TrimSpace(line))
			}
		}
	}
	return found
}

// The chart accepts what the page installs.
func TestThePageInstalls(t *testing.T) {
	installs := commands(t, "helm install")
	if len(installs) < 2 {
		t.Fatalf("the page installs by %q", installs)
	}
	for _, install := range installs {
		values := map[string]any{}
		words := strings.Fields(strings.ReplaceAll(install, "'", ""))
		for i, word := range words {
			switch word {
			case "--values":
				must(t, yaml.Unmarshal(read(t, filepath.Join("../..", words[i+1])), &values))
			case "--set":
				must(t, strvals.ParseInto(words[i+1], values))
			}
		}
		text, err := render(values)
		must(t, err)
		decode(t, text)
	}
}

// Helm waits for the jobs as long as these may take.
func TestThePageWaitsForJobs(t *testing.T) {
	given := regexp.MustCompile(`--timeout=(\S+)`)
	for _, command := range slices.Concat(commands(t, "helm install"), commands(t, "helm upgrade")) {
		match := given.FindStringSubmatch(command)
		if match == nil {
			t.Fatalf("%q waits for five minutes", command)
		}
		waits, err := time.ParseDuration(match[1])
		must(t, err)
		for _, job := range some[*batch.Job](t, rendered(t, "testdata/plain.yaml")) {
			if takes := time.Duration(*job.Spec.ActiveDeadlineSeconds) * time.Second; takes >= waits {
				t.Errorf("%s may take %v, and %q waits for less", job.Name, takes, command)
			}
		}
	}
}

// The page removes what Helm leaves: hooks belong to no release.
func TestThePageRemovesHooks(t *testing.T) {
	removed := regexp.MustCompile(`delete (\S+) --selector=(\S+)`).FindStringSubmatch(strings.Join(commands(t, "kubectl"), "\n"))
	if removed == nil {
		t.Fatal("the page removes nothing")
	}
	kinds := strings.Split(removed[1], ",")
	selector, err := labels.Parse(removed[2])
	must(t, err)
	for _, object := range rendered(t, "testdata/plain.yaml") {
		kind := strings.ToLower(object.GetObjectKind().GroupVersionKind().Kind)
		if object.GetAnnotations()["helm.sh/hook"] != "" && !(slices.Contains(kinds, kind) && selector.Matches(labels.Set(object.GetLabels()))) {
			t.Errorf("the %s %s is left behind", kind, object.GetName())
		}
	}
}

// A command of the page creates each Secret that the chart needs by itself.
func TestThePageMakesTheSecrets(t *testing.T) {
	made := strings.Join(commands(t, "kubectl"), "\n")
	for _, w := range workloads(t, rendered(t, "testdata/plain.yaml")) {
		for _, secret := range secretFiles(w) {
			for _, kind := range []string{"database", "owner"} {
				if module := strings.TrimPrefix(w.name, "migrate-"); secret == "weir-"+module+"-"+kind {
					secret = `"weir-$module-` + kind + `"`
				}
			}
			if !strings.Contains(made, "create secret generic "+secret) {
				t.Errorf("the page makes no Secret %s", secret)
			}
		}
	}
}
