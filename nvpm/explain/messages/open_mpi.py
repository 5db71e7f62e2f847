# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Rows about messages of Open MPI, MPICH and MVAPICH."""

from .. import causes as c
from ..model import FINE, FITS, FOLLOWS, POSSIBLE, Case, Message, Section
from ..verbs import OTHER_PODS, RETRY

# The CPU or the kernel touched GPU memory on behalf of MPI.
TOUCHED = (
    Case(c.UCX_TLS, ("gpu", "ucx_tls_without_cuda")),
    Case(c.UCX_NO_CUDA, ("gpu", "ucx_without_cuda"), ()),
    Case(c.MPI_NO_CUDA, ("gpu",), (), FITS),
    Case(c.MEMTYPE, ("gpu",), ("ucx_tls_without_cuda", "ucx_without_cuda"), POSSIBLE),
)

# A frame of a backtrace, which does not show by itself that the buffer was GPU memory.
FRAME = (
    Case(c.UCX_TLS, ("gpu", "ucx_tls_without_cuda"), (), FITS),
    Case(c.MPI_NO_CUDA, ("gpu",), (), FITS),
)

UCX_INSTEAD = "UCX in place of openib: `--mca pml ucx`; or load the module if there is none"

SECTION = Section(
    "MPI",
    "Open MPI, MVAPICH and others. Open MPI 5 and MPICH leave GPU memory to UCX or libfabric: look "
    "there first.",
    (
        Message(
            "Error: ucx send failed",
            "open-mpi/ompi: ompi/mca/pml/ucx/pml_ucx.c",
            note="UCX could not register the memory, or could not send",
            do="`UCX_LOG_LEVEL=warn`, and look for `ibv_reg_mr(address=` or `synd` above it",
            kind=FOLLOWS,
        ),
        Message(
            "Error: ucx recv failed",
            "open-mpi/ompi: ompi/mca/pml/ucx/pml_ucx.c",
            note="UCX could not register the memory, or could not receive",
            do="`UCX_LOG_LEVEL=warn`, and look for `ibv_reg_mr(address=` or `synd` above it",
            kind=FOLLOWS,
        ),
        Message(
            "You requested to run with CUDA GPU Direct RDMA support but this OFED",
            "open-mpi/ompi: opal/mca/btl/openib/help-mpi-btl-openib.txt, 4.1",
            (
                Case(c.MEMORY_PEERS, ("peermem_loaded",), do=UCX_INSTEAD),
                Case(c.NO_CLIENT, (), (), FITS),
            ),
            note="Open MPI 4 with its openib looks for `/sys/kernel/mm/memory_peers/nv_mem/version`"
            " only; with UCX (`--mca pml ucx`) it does not",
        ),
        Message(
            "You requested to run with CUDA GPU Direct RDMA support but the Open MPI",
            "open-mpi/ompi: opal/mca/btl/openib/help-mpi-btl-openib.txt, 4.1",
            (Case(c.MPI_NO_CUDA),),
        ),
        Message(
            "OpenFabrics (openib) BTL failed to initialize",
            "open-mpi/ompi: opal/mca/btl/openib/help-mpi-btl-openib.txt, 4.1",
            note="the next line says what Open MPI tried",
            do="Look at the next line: `allocate some locked memory` or `create an internal queue`",
            kind=FOLLOWS,
        ),
        Message(
            "allocate some locked memory",
            "open-mpi/ompi: opal/mca/btl/openib/help-mpi-btl-openib.txt, 4.1; ompi#6468",
            (Case(c.MEMLOCK),),
        ),
        Message(
            "create an internal queue",
            "open-mpi/ompi: opal/mca/btl/openib/help-mpi-btl-openib.txt, 4.1",
            note="a queue could not be made, for the reason in the line `Error:` below",
            do=UCX_INSTEAD,
            kind=FOLLOWS,
        ),
        Message(
            "There was an error initializing an OpenFabrics device",
            "open-mpi/ompi: opal/mca/btl/openib/help-mpi-btl-openib.txt, 4.1",
            note="the old openib does not know the device; UCX transfers in its place",
            do="`--mca pml ucx --mca btl ^openib`, and the line does not come again",
            kind=FINE,
        ),
        Message(
            "trying to get the BUFFER_ID of a GPU memory",
            "open-mpi/ompi: opal/mca/accelerator/cuda/help-accelerator-cuda.txt",
            (Case(c.NOT_GPU_MEMORY),),
            sure=FITS,
        ),
        Message(
            "attempted to open the following supporting CUDA libraries",
            "open-mpi/ompi: opal/mca/accelerator/cuda/help-accelerator-cuda.txt",
            (Case(c.NO_LIBCUDA),),
            note="on nodes without a GPU the line has no meaning",
            sure=POSSIBLE,
        ),
        Message(
            "Signal code: Invalid permissions (2)",
            "open-mpi/ompi: opal/util/stacktrace.c; lammps#250; ompi#7064, #11399",
            TOUCHED,
            note="with the GPU's memory the CPU gets this signal: MPI took a GPU's buffer for host "
            "memory. The frames below name the transport (`vader`, `sm`, `tcp`, `psm2`)",
        ),
        Message(
            "<Read|Wrote> -1, expected <n>, errno = 14",
            "open-mpi/ompi: opal/mca/btl/vader/btl_vader_get.c, 4.1; ompi#8877, COSMA#59",
            TOUCHED,
            note="the kernel was to copy a GPU's buffer between two processes",
        ),
        Message(
            "<mxm_handle_error|mxm_proto_set_data_buf_long|mca_pml_yalla_isend>()",
            "Mellanox MXM, up to MLNX_OFED 4; multi-gpu-programming-models#3, LBPM#34",
            (Case(c.MPI_NO_CUDA, ("gpu",)),),
            note="MXM (`--mca pml yalla`) knows no GPU memory",
            do="`--mca pml ucx` with a UCX built with CUDA",
            sure=FITS,
        ),
        Message(
            "<undefined symbol: cuIpcOpenMemHandle_v2|Function Name: cuIpcOpenMemHandle_v2>",
            "open-mpi/ompi: opal/mca/common/cuda/help-mpi-common-cuda.txt; ompi#9690, #13326",
            (Case(c.MPI_NO_CUDA),),
            note="the libcuda that was found is older than the CUDA that this MPI was built with, "
            "and MPI goes on without CUDA",
            do="A newer NVIDIA driver, or an MPI built with the CUDA of this driver; "
            "`LD_LIBRARY_PATH` without `stubs`",
        ),
        Message(
            "trying to map in the address of a function",
            "open-mpi/ompi: opal/mca/common/cuda/help-mpi-common-cuda.txt",
            (Case(c.MPI_NO_CUDA),),
            note="libcuda lacks a function that this MPI needs: see `Function Name`",
            do="A newer NVIDIA driver, or an MPI built with the CUDA of this driver",
            sure=FITS,
        ),
        Message(
            "Open MPI was compiled without dynamic library support",
            "open-mpi/ompi: opal/mca/common/cuda/help-mpi-common-cuda.txt",
            (Case(c.MPI_NO_CUDA),),
        ),
        Message(
            "CUDA-aware support is disabled",
            "open-mpi/ompi: opal/mca/common/cuda/help-mpi-common-cuda.txt",
            note="the lines above say why",
            do="Look at the lines above it",
            kind=FOLLOWS,
        ),
        Message(
            "You requested to run with CUDA GPU Direct RDMA support but also with",
            "open-mpi/ompi: opal/mca/btl/openib/help-mpi-btl-openib.txt, 4.1",
            (Case(c.OPTIONS),),
            do="Without `mpi_leave_pinned 0`; or `--mca pml ucx`",
        ),
        Message(
            "The call to <cuIpcGetMemHandle|cuMemGetAddressRange> failed. This means the GPU RDMA",
            "open-mpi/ompi: opal/mca/common/cuda/help-mpi-common-cuda.txt; LBPM#34",
            note="`GPU RDMA` here means copies between GPUs of one node, which go through host "
            "memory now",
            kind=FINE,
        ),
        Message(
            "The call to <cuIpcCloseMemHandle failed|cuMemHostRegister|cuCtxGetCurrent() failed>",
            "open-mpi/ompi: opal/mca/common/cuda/help-mpi-common-cuda.txt; horovod#82",
            note="MPI goes on; copies of host memory are slower",
            kind=FINE,
        ),
        Message(
            "error polling <LP|HP> CQ with status",
            "open-mpi/ompi: opal/mca/btl/openib/btl_openib_component.c, 4.1",
            (
                Case(c.ACS, ("line:status number 4 for",)),
                Case(c.FREED, ("line:status number 10 for",)),
                Case(c.PEER_NIC, ("line:status number 11 for",)),
                *(one._replace(when=("line:status number 12 for", *one.when)) for one in RETRY),
            ),
            sure=FITS,
        ),
        Message(
            "InfiniBand retry count between two MPI processes",
            "open-mpi/ompi: opal/mca/btl/openib/help-mpi-btl-openib.txt, 4.1",
            RETRY,
            sure=FITS,
        ),
        Message(
            "there are no active ports detected",
            "open-mpi/ompi: opal/mca/btl/openib/help-mpi-btl-openib.txt, 4.1",
            (Case(c.PORT),),
            note="openib found no port that is up; with UCX the line has no meaning",
            sure=POSSIBLE,
            unless=("one_node",),
        ),
        Message(
            "for Open MPI 4.0 and later, infiniband ports on a device",
            "open-mpi/ompi: opal/mca/btl/openib/help-mpi-btl-openib.txt, 4.1",
            note="UCX transfers in place of the old openib",
            do="`--mca pml ucx --mca btl ^openib`, and the line does not come again",
            kind=FINE,
        ),
        Message(
            "No preset parameters were found for the device",
            "open-mpi/ompi: opal/mca/btl/openib/help-mpi-btl-openib.txt, 4.1",
            note="the old openib does not know the device; UCX does",
            do="`--mca pml ucx --mca btl ^openib`, and the line does not come again",
            kind=FINE,
        ),
        Message(
            "sent help message help-mpi-btl-openib.txt / <error in device init|ib port not "
            "selected|no device params found>",
            "open-mpi/ompi: opal/mca/btl/openib/help-mpi-btl-openib.txt, 4.1",
            note="the old openib does not know the device; UCX transfers in its place",
            kind=FINE,
        ),
        Message(
            "<Error: Failed to create UCP worker|Failed to query UCP worker address|Error: "
            "ucp_ep_create(proc=>",
            "open-mpi/ompi: ompi/mca/pml/ucx/pml_ucx.c",
            note="UCX could not begin, or could not reach the peer",
            do="Look for `UCX  ERROR` above it",
            kind=FOLLOWS,
        ),
        Message(
            "unable to open GDR driver, is gdrdrv.ko loaded",
            "MVAPICH2-GDR; gdrcopy#72",
            (Case(c.GDRDRV),),
            note="`MV2_USE_GDRCOPY=0` goes on without gdrcopy",
        ),
        Message(
            "The GPU and IB selected are not on the same socket",
            "MVAPICH2-GDR; reframe#265",
            note="slower, without an error: another NIC (`MV2_IBA_HCA`) is nearer to the GPU",
            kind=FINE,
        ),
        Message(
            "<PML ucx cannot be selected|No components were able to be opened in the pml "
            "framework>",
            "open-mpi/ompi: ompi/mca/pml/base; ucx#3174, ompi#11669",
            note="UCX found no transport or no device",
            do="`UCX_LOG_LEVEL=info`, and look for `UCX  ERROR` above it; `ucx_info -d`",
            kind=FOLLOWS,
        ),
        Message(
            "<process_vm_readv|process_vm_writev>: Bad address",
            "Cray MPICH; scale-validation#66",
            FRAME,
            note="the kernel was to copy a GPU's buffer between two processes",
        ),
        Message(
            "Unable to run program linked with CUDA",
            "MVAPICH2: configure; hpc-container-maker#80",
            (Case(c.NO_LIBCUDA),),
            note="configure finds no libcuda to run its test with",
            do="`LD_LIBRARY_PATH` with `/usr/local/cuda/lib64/stubs` (as libcuda.so.1) for the "
            "build only",
        ),
        Message(
            "Failed to modify UD QP to INIT on",
            "ofiwg/libfabric: prov/psm3; ucx#9468",
            note="libfabric's provider psm3 tries this NIC, and Open MPI takes another way",
            do="`--mca mtl ^ofi --mca btl ^ofi`, or `FI_PROVIDER=^psm3`, and the line does not "
            "come again",
            kind=FINE,
        ),
        Message(
            "At least one pair of MPI processes are unable to reach each other",
            "open-mpi/ompi: ompi/mca/bml/r2/help-mpi-bml-r2.txt; ompi#7555",
            note="no transport that may be used leads to the peer",
            do="`--mca pml ucx` (the old openib takes InfiniBand only with "
            "`--mca btl_openib_allow_ib 1`); `--mca btl_base_verbose 100` says more",
            kind=FOLLOWS,
        ),
        Message(
            "CUDA support: no",
            "open-mpi/ompi: configure; ompi#12264, #12334, #11138, spack#36760",
            (Case(c.MPI_NO_CUDA, (), ("amd",)),),
            note="the end of Open MPI's configure: it did not find CUDA, in most cases libcuda",
            do="`--with-cuda=/usr/local/cuda --with-cuda-libdir=DIR`, where DIR has libcuda.so "
            "(also that of `stubs`)",
            sure=FITS,
        ),
        Message(
            "checking for cuda library (cuda) in <*>not found",
            "open-mpi/ompi: configure; ompi#11138, nixpkgs#423154",
            (Case(c.MPI_NO_CUDA),),
            note="Open MPI's configure does not find libcuda",
            do="`--with-cuda-libdir=DIR`, where DIR has libcuda.so (also that of `stubs`)",
            sure=FITS,
        ),
        Message(
            "<mpi_built_with_cuda_support|opal_built_with_cuda_support>:value:false",
            "open-mpi/ompi: ompi_info; ompi#12334, #12048",
            (Case(c.MPI_NO_CUDA, (), ("amd",)),),
            sure=FITS,
        ),
        Message(
            'built_with_cuda_support" (current value: "false"',
            "open-mpi/ompi: ompi_info; parthenon#237",
            (Case(c.MPI_NO_CUDA, (), ("amd",)),),
            sure=FITS,
        ),
        Message(
            "but the library was not compiled with any support",
            "open-mpi/ompi: ompi/runtime/help-mpi-runtime.txt, 4.1; openmpi-feedstock#83",
            (Case(c.MPI_NO_CUDA),),
            note="`mpi_cuda_support 1` is set",
        ),
        Message(
            "built with CUDA awareness but <it|this support> is disabled by default",
            "conda-forge/openmpi-feedstock: recipe; LibreCuda#17",
            (Case(c.MPI_NO_CUDA),),
            note="conda prints this when it installs Open MPI",
            do="`OMPI_MCA_opal_cuda_support=true` (or `OMPI_MCA_pml=ucx` with the package ucx)",
            sure=POSSIBLE,
        ),
        Message(
            "MPI <library|implementation|Implementation> does not have CUDA-aware support",
            "Open MPI's example for MPIX_Query_cuda_support, which many programs contain",
            (Case(c.MPI_NO_CUDA),),
            sure=FITS,
        ),
        Message(
            "your MPI is not GPU-aware",
            "petsc/petsc: src/sys/objects/device; llnl/smith#1158",
            (Case(c.MPI_NO_CUDA),),
            note="PETSc tries it with a buffer of the GPU. Spectrum MPI needs `jsrun "
            "--smpiargs=-gpu`, Cray MPICH `MPICH_GPU_SUPPORT_ENABLED=1`, MVAPICH2 `MV2_USE_CUDA=1`",
            sure=FITS,
            unless=("amd",),
        ),
        Message(
            "your MPI implementation is NOT GPU aware",
            "trilinos/Trilinos: packages/tpetra/core/CMakeLists.txt; Trilinos#14844",
            (Case(c.MPI_NO_CUDA),),
            sure=FITS,
            unless=("amd",),
        ),
        Message(
            "GPU-aware MPI <since it is|was> not detected",
            "lammps/lammps: src/KOKKOS/kokkos.cpp; gromacs: taskassignment",
            (Case(c.MPI_NO_CUDA),),
            note="the program copies through host memory: slower, without an error",
            sure=POSSIBLE,
            unless=("amd",),
        ),
        Message(
            "GTL library is not linked",
            "Cray MPICH; cscs-docs#40, APPFL#258, warpx#2736",
            (Case(c.MPI_NO_CUDA),),
            note="`MPICH_GPU_SUPPORT_ENABLED=1` is set, and the program was linked without Cray's "
            "library for GPUs",
            do="Load `craype-accel-nvidia80` (or the module of this GPU) and link with `cc` or "
            "`CC`; in Python import mpi4py before other MPI modules; on a login node unset the "
            "variable",
        ),
        Message(
            "CUDA Hook Library: Failed to find symbol",
            "IBM Spectrum MPI; stencil#16",
            (Case(c.OPTIONS),),
            note="`-gpu` of jsrun, and a program that uses CUDA without or before MPI",
            do='Without `--smpiargs="-gpu"`, or `--smpiargs="-disable_gpu_hooks"`, for programs '
            "that do not use MPI",
            sure=FITS,
        ),
        Message(
            "PAMI<*>PacketIovecWriter",
            "IBM Spectrum MPI; Trilinos#4762",
            (Case(c.MPI_NO_CUDA, ("gpu",)),),
            note="in a backtrace of a segmentation fault: Spectrum MPI took GPU memory for host "
            "memory",
            do='`jsrun --smpiargs="-gpu"`, `mpirun -gpu`',
            sure=POSSIBLE,
        ),
        Message(
            "rdma_iba_hca_init<*>cannot create cq",
            "MVAPICH2: src/mpid/ch3/channels/mrail; flux-core#4451",
            (
                Case(c.NIC_LIMIT, ("memlock_unlimited",)),
                Case(c.MEMLOCK, (), ()),
            ),
            sure=FITS,
        ),
        Message(
            "<non_overlap_copy_content_same_ddt|ompi_datatype_sndrcv|ompi_op_base_2buff_"
            "|ompi_op_avx_2buff_|opal_generic_simple_pack|mca_btl_vader_sendi>",
            "open-mpi/ompi: opal/datatype and others; easybuild-easyconfigs#14801, ompi#7064",
            FRAME,
            note="in a backtrace of a segmentation fault: Open MPI itself copied or added with the "
            "CPU. A UCX with CUDA does not help collectives of an Open MPI without CUDA",
        ),
        Message(
            "unable to open mca_<w>: libcuda.so.1: cannot open shared object",
            "open-mpi/ompi: opal/mca/base",
            (Case(c.NO_LIBCUDA),),
            note="on nodes without a GPU the line has no meaning",
            sure=POSSIBLE,
        ),
        Message(
            "was unable to find any relevant network interfaces",
            "open-mpi/ompi: opal/mca/btl/base/help-mpi-btl-base.txt; nvidia-docker#930",
            note="a transport of Open MPI found no device, in most cases the old openib, and "
            "another transport is used",
            kind=FINE,
        ),
        Message(
            "Please recompile benchmark with CUDA support",
            "OSU micro-benchmarks: c/util/osu_util.c",
            (Case(c.OPTIONS),),
            do="`./configure --enable-cuda --with-cuda=/usr/local/cuda CC=mpicc`",
        ),
        Message(
            "Open MPI failed to open an OpenFabrics device",
            "open-mpi/ompi: opal/mca/btl/openib/help-mpi-btl-openib.txt; k8s-rdma-device-plugin#8",
            (
                Case(c.DEVICE_DENIED, ("container",), do=OTHER_PODS, sure=FITS),
                Case(c.NIC_LOST, (), ("container",)),
                Case(c.DEVICE_DENIED, (), ("container",)),
            ),
            note="the lines after it name the device and the error",
            sure=POSSIBLE,
        ),
    ),
)
