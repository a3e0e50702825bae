package kubernetes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Objects for Strimzi have the fields and values of its own types,
// which it publishes only for Java.
func TestStrimziKnowsAll(t *testing.T) {
	jars := strimziJars(t)
	var manifests []string
	for _, file := range []string{"kafka.yaml", "users.yaml"} {
		for _, document := range documents(t, read(t, filepath.Join("companions", file))) {
			manifests = append(manifests, kindOf(t, document), written(t, document))
		}
	}
	if out, err := decodeByStrimzi(t, jars, manifests...); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	for said, wrong := range map[string]string{
		"akls": "{apiVersion: kafka.strimzi.io/v1, kind: KafkaUser, spec: {authorization: {type: simple, akls: []}}}",
		"Reed": "{apiVersion: kafka.strimzi.io/v1, kind: KafkaUser, spec: {authorization: {type: simple, acls: [{resource: {type: topic, name: x}, operations: [Reed]}]}}}",
		"v9":   "{apiVersion: kafka.strimzi.io/v9, kind: KafkaUser, spec: {}}",
	} {
		if out, err := decodeByStrimzi(t, jars, "KafkaUser", written(t, []byte(wrong))); err == nil || !strings.Contains(out, said) {
			t.Errorf("%s: %v: %s", wrong, err, out)
		}
	}
}

// strimziJars returns the folder of Strimzi's types.
func strimziJars(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	fetch := exec.CommandContext(t.Context(), "mvn", "--batch-mode", "--quiet", "--file=strimzi/pom.xml", "dependency:copy-dependencies", "-DoutputDirectory="+folder)
	if out, err := fetch.CombinedOutput(); err != nil {
		t.Fatalf("cannot fetch Strimzi's types: %v: %s; it takes Java 17 and Maven", err, out)
	}
	return folder
}

func kindOf(t *testing.T, document []byte) string {
	t.Helper()
	var object struct{ Kind string }
	must(t, yaml.Unmarshal(document, &object))
	return object.Kind
}

func written(t *testing.T, document []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	must(t, os.WriteFile(file, document, 0o600))
	return file
}

// decodeByStrimzi decodes files, each after its kind.
func decodeByStrimzi(t *testing.T, jars string, manifests ...string) (output string, err error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "java", append([]string{"-XX:TieredStopAtLevel=1", "-cp", jars + "/*", "strimzi/Strict.java"}, manifests...)...).CombinedOutput()
	return string(out), err
}
