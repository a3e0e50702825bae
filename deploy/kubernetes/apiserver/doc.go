// Package apiserver names what an API server of Kubernetes is compiled of:
// the tools of its go.mod, etcd, kube-apiserver and kubectl. It has no code.
package apiserver
