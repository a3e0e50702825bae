package kubernetes

import (
	"reflect"
	"testing"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// objects are the chart's objects.
type objects []client.Object

// all returns the objects of one type.
func all[T client.Object](among objects) (found []T) {
	for _, object := range among {
		if one, is := object.(T); is {
			found = append(found, one)
		}
	}
	return found
}

// some returns the objects of one type, at least one.
func some[T client.Object](t *testing.T, among objects) []T {
	t.Helper()
	found := all[T](among)
	if len(found) == 0 {
		t.Fatalf("there is no %s", reflect.TypeFor[T]())
	}
	return found
}

// A workload is a program with its pods.
type workload struct {
	name   string
	serves bool
	core.PodTemplateSpec
}

func (w workload) container() core.Container { return w.Spec.Containers[0] }

// variable returns the value of an environment variable.
func (w workload) variable(name string) string {
	for _, variable := range w.container().Env {
		if variable.Name == name {
			return variable.Value
		}
	}
	return ""
}

// workloads returns all services and jobs.
func workloads(t *testing.T, among objects) (found []workload) {
	t.Helper()
	for _, deployment := range some[*apps.Deployment](t, among) {
		found = append(found, workload{deployment.Name, true, deployment.Spec.Template})
	}
	for _, job := range all[*batch.Job](among) {
		found = append(found, workload{job.Name, false, job.Spec.Template})
	}
	for _, w := range found {
		if len(w.Spec.Containers) != 1 || len(w.Spec.InitContainers) != 0 {
			t.Fatalf("%s has other containers beside its own", w.name)
		}
	}
	return found
}
