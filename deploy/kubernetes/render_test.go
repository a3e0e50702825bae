package kubernetes

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/chart"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	yamlreader "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	namespace = "weir"
	release   = "weir"
)

// variants returns the files of values to test the chart with.
func variants(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	must(t, err)
	if len(files) < 3 {
		t.Fatalf("found the values %q", files)
	}
	return append(files, "companions/values.yaml")
}

// forVariants tests the chart's objects with each of them.
func forVariants(t *testing.T, test func(*testing.T, objects)) {
	t.Helper()
	for _, file := range variants(t) {
		t.Run(filepath.Base(file), func(t *testing.T) { test(t, rendered(t, file)) })
	}
}

// rendered returns the chart's objects with the values of a file.
func rendered(t *testing.T, file string) objects {
	t.Helper()
	return decode(t, manifests(t, file))
}

// manifests returns the same as text.
func manifests(t *testing.T, file string) []byte {
	t.Helper()
	values := map[string]any{}
	must(t, yaml.Unmarshal(read(t, file), &values))
	text, err := render(values)
	must(t, err)
	return text
}

var weir = sync.OnceValues(func() (chart.Charter, error) { return loader.Load("weir") })

// render does what `helm template` does.
func render(values map[string]any) ([]byte, error) {
	weir, err := weir()
	if err != nil {
		return nil, err
	}
	options := common.ReleaseOptions{Name: release, Namespace: namespace, IsInstall: true}
	given, err := util.ToRenderValues(weir, values, options, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(weir, given)
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".yaml") {
			fmt.Fprintf(&all, "---\n%s\n", files[name])
		}
	}
	return all.Bytes(), nil
}

// decode reads manifests as their projects' published types, and
// refuses unknown fields.
func decode(t *testing.T, manifests []byte) (all objects) {
	t.Helper()
	types := runtime.NewScheme()
	must(t, errors.Join(scheme.AddToScheme(types), monitoring.AddToScheme(types)))
	decoder := serializer.NewCodecFactory(types, serializer.EnableStrict).UniversalDeserializer()
	for _, document := range documents(t, manifests) {
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		all = append(all, object.(client.Object))
	}
	return all
}

// documents returns the manifests one by one, without empty ones.
func documents(t *testing.T, manifests []byte) (all [][]byte) {
	t.Helper()
	split := yamlreader.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifests)))
	for {
		document, err := split.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		must(t, err)
		var content any
		must(t, yaml.Unmarshal(document, &content))
		if content != nil {
			all = append(all, document)
		}
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	must(t, err)
	return content
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
