package kubernetes

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

// binaries is the folder in which `make test-kubernetes` builds
// etcd and kube-apiserver.
const binaries = "../../bin/kubernetes"

// definitions are the custom resources, in their publishers' modules.
var definitions = map[string]string{
	"github.com/prometheus-operator/prometheus-operator@v0.85.0": "example/prometheus-operator-crd",
	"github.com/cloudnative-pg/cloudnative-pg@v1.28.0":           "config/crd/bases",
	"github.com/cert-manager/cert-manager@v1.21.2":               "deploy/crds",
}

// A cluster is an API server without nodes and controllers: it stores
// objects, and nothing acts on them.
type cluster struct {
	client.Client

	config []byte // for kubectl
}

func start(t *testing.T) cluster {
	t.Helper()
	server := &envtest.Environment{BinaryAssetsDirectory: binaries, ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: 5 * time.Minute}
	for module, dir := range definitions {
		server.CRDDirectoryPaths = append(server.CRDDirectoryPaths, filepath.Join(download(t, module), dir))
	}
	server.CRDDirectoryPaths = append(server.CRDDirectoryPaths, "strimzi/definitions.yaml", "barman/definitions.yaml")
	server.ControlPlane.GetAPIServer().Configure().Set("disable-admission-plugins", "")
	t.Cleanup(func() { must(t, server.Stop()) })
	config, err := server.Start()
	must(t, err)
	made, err := client.New(config, client.Options{})
	must(t, err)
	return cluster{made, server.KubeConfig}
}

// download returns the folder of a module.
func download(t *testing.T, module string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	command.Dir = t.TempDir()
	out, err := command.Output()
	if err != nil {
		t.Fatalf("cannot download %s: %v: %s", module, err, out)
	}
	var downloaded struct{ Dir string }
	must(t, json.Unmarshal(out, &downloaded))
	return downloaded.Dir
}

// apply sends the server a manifest, as `kubectl apply --server-side`
// does: it refuses unknown fields.
func (c cluster) apply(ctx context.Context, manifest []byte) error {
	return c.applyAs(ctx, manifest, "weir")
}

// applyAs applies a manifest as one of several that each have a part of an object.
func (c cluster) applyAs(ctx context.Context, manifest []byte, owner string) error {
	var object unstructured.Unstructured
	if err := yaml.Unmarshal(manifest, &object.Object); err != nil {
		return err
	}
	object.SetNamespace(namespace)
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(&object), client.FieldOwner(owner), client.ForceOwnership)
}

// admits reports whether a pod may run, without running it.
func (c cluster) admits(ctx context.Context, name string, of core.PodTemplateSpec) error {
	pod := &core.Pod{ObjectMeta: meta.ObjectMeta{Name: name, Namespace: namespace, Labels: of.Labels}, Spec: of.Spec}
	return c.Create(ctx, pod, client.DryRunAll)
}

// prepare creates a namespace for restricted pods only, with what
// controllers would create in it.
func (c cluster) prepare(t *testing.T) {
	t.Helper()
	labels := map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	must(t, c.Create(t.Context(), &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: namespace, Labels: labels}}))
	must(t, c.Create(t.Context(), &core.ServiceAccount{ObjectMeta: meta.ObjectMeta{Name: "default", Namespace: namespace}}))
}

// A real API server accepts the chart's objects, one variant over the
// other as in an upgrade, and the pods that follow.
func TestAPIServer(t *testing.T) {
	kubernetes := start(t)
	kubernetes.prepare(t)
	for _, file := range variants(t) {
		t.Run(filepath.Base(file), func(t *testing.T) { kubernetes.upgrade(t, file) })
	}
	t.Run("companions", kubernetes.takesCompanions)
	t.Run("refusals", kubernetes.refuses)
}

func (c cluster) upgrade(t *testing.T, file string) {
	// A job is removed before it is created again, as its annotation demands.
	must(t, c.DeleteAllOf(t.Context(), &batch.Job{}, client.InNamespace(namespace), client.PropagationPolicy(meta.DeletePropagationBackground)))
	for _, manifest := range documents(t, manifests(t, file)) {
		if err := c.apply(t.Context(), manifest); err != nil {
			t.Errorf("%v:\n%s", err, manifest)
		}
	}
	for _, w := range workloads(t, rendered(t, file)) {
		if err := c.admits(t.Context(), w.name, w.PodTemplateSpec); err != nil {
			t.Errorf("the pods of %s: %v", w.name, err)
		}
	}
}

func (c cluster) takesCompanions(t *testing.T) {
	for _, file := range []string{"postgres.yaml", "certificates.yaml"} {
		for _, manifest := range documents(t, read(t, filepath.Join("companions", file))) {
			if err := c.apply(t.Context(), manifest); err != nil {
				t.Errorf("%s: %v:\n%s", file, err, manifest)
			}
		}
	}
	for _, manifest := range documents(t, read(t, filepath.Join("companions", "backup.yaml"))) {
		if err := c.applyAs(t.Context(), manifest, "weir-backup"); err != nil {
			t.Errorf("backup.yaml: %v:\n%s", err, manifest)
		}
	}
}

// The server does refuse: an unknown field, and a pod with default rights.
func (c cluster) refuses(t *testing.T) {
	misspelled := "apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {ports: [{port: 1}], selektor: {}}\n"
	if err := c.apply(t.Context(), []byte(misspelled)); err == nil || !strings.Contains(err.Error(), "selektor") {
		t.Errorf("a field that there is not: %v", err)
	}
	pod := core.PodTemplateSpec{Spec: core.PodSpec{Containers: []core.Container{{Name: "x", Image: "x:v1.0.0"}}}}
	if err := c.admits(t.Context(), "x", pod); err == nil || !strings.Contains(err.Error(), "violates PodSecurity") {
		t.Errorf("a pod with all rights: %v", err)
	}
}
