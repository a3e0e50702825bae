// Package apiserver lists what a Kubernetes API server is compiled of, as
// the tools of its go.mod: etcd, kube-apiserver and kubectl. It has no code.
package apiserver
