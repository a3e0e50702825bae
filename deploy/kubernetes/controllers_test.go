package kubernetes

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// companions are the kinds that operators report as ready.
var companions = []struct{ version, kind string }{
	{"kafka.strimzi.io/v1", "Kafka"}, {"kafka.strimzi.io/v1", "KafkaUser"},
	{"postgresql.cnpg.io/v1", "Cluster"}, {"cert-manager.io/v1", "Certificate"},
}

// control sets the states that controllers and operators would set once
// all is well, until the context ends.
func (c cluster) control(ctx context.Context) {
	for ctx.Err() == nil {
		c.endJobs(ctx)
		c.serve(ctx)
		for _, of := range companions {
			c.ready(ctx, of.version, of.kind)
		}
		time.Sleep(100 * time.Millisecond) // a pace, not a wait
	}
}

// endJobs marks jobs as complete.
func (c cluster) endJobs(ctx context.Context) {
	var jobs batch.JobList
	_ = c.List(ctx, &jobs, client.InNamespace(namespace))
	for _, job := range jobs.Items {
		now := meta.Now()
		job.Status = batch.JobStatus{
			StartTime: &now, CompletionTime: &now, Succeeded: 1,
			Conditions: []batch.JobCondition{
				{Type: batch.JobSuccessCriteriaMet, Status: core.ConditionTrue, LastTransitionTime: now},
				{Type: batch.JobComplete, Status: core.ConditionTrue, LastTransitionTime: now},
			},
		}
		_ = c.Status().Update(ctx, &job) // refused once it is done
	}
}

// serve marks all replicas of deployments as available.
func (c cluster) serve(ctx context.Context) {
	var deployments apps.DeploymentList
	_ = c.List(ctx, &deployments, client.InNamespace(namespace))
	for _, d := range deployments.Items {
		replicas := *d.Spec.Replicas
		d.Status = apps.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas,
			Conditions: []apps.DeploymentCondition{{Type: apps.DeploymentAvailable, Status: core.ConditionTrue}},
		}
		_ = c.Status().Update(ctx, &d) // retried after a conflict
	}
}

// ready marks the objects of an operator as ready.
func (c cluster) ready(ctx context.Context, version, kind string) {
	var all unstructured.UnstructuredList
	all.SetAPIVersion(version)
	all.SetKind(kind)
	_ = c.List(ctx, &all, client.InNamespace(namespace))
	patch := []byte(`{"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Test", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`)
	for _, object := range all.Items {
		_ = c.Status().Patch(ctx, &object, client.RawPatch("application/merge-patch+json", patch))
	}
}

// has checks for a deployment of an image.
func (c cluster) has(t *testing.T, image string) {
	t.Helper()
	images := c.images(t)
	if !slices.ContainsFunc(images, func(of string) bool { return strings.Contains(of, image) }) {
		t.Errorf("the deployments have the images %q, none %s", images, image)
	}
}

// hasNone checks that there is none.
func (c cluster) hasNone(t *testing.T) {
	t.Helper()
	if images := c.images(t); len(images) > 0 {
		t.Errorf("there are still deployments of %q", images)
	}
}

func (c cluster) images(t *testing.T) (images []string) {
	t.Helper()
	var deployments apps.DeploymentList
	must(t, c.List(t.Context(), &deployments, client.InNamespace(namespace)))
	for _, d := range deployments.Items {
		images = append(images, d.Spec.Template.Spec.Containers[0].Image)
	}
	return images
}
