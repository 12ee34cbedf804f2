module sigs.k8s.io/container-object-storage-interface/internal

go 1.26.0
