// Package lab runs a real Kubernetes control plane on one machine, for tests and for the demo: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, KWOK in place of kubelets, and Karpenter with its KWOK provider. Nothing is
// simulated but the machines themselves.
//
// The six programs are built from Go modules pinned in lab/tools, so a lab needs neither containers nor downloads of
// binaries, only the go command for the first build. [Build] keeps them in a cache keyed by everything that went in.
//
// What a lab promises:
//
//   - [Up] returns when every component answers its health endpoint, the Karpenter CRDs are Established, and the
//     KWOKNodeClass "default" exists; when a component dies on the way, the error carries the last lines of its log.
//   - A lab listens on loopback, with TLS of its own and RBAC on. (Karpenter offers no bind address: its metrics and
//     health ports listen on every interface.) Every component and every ServiceAccount acts as itself, so the audit log
//     says who wrote what.
//   - Labs are told apart by name and run side by side; none sees another's ports, files or processes.
//   - [Lab.Down] leaves no process and no file of the lab; only the cache of built programs stays. A lab that is not
//     Detached dies with the process that started it, even when that process is killed.
//   - Only processes that a lab started are signalled, and only after their identity (pid and start time) is proven.
//
// State lives under one folder per lab: lab.json (who runs, where), pki, kubeconfigs, logs, audit.log and etcd's data.
package lab
