"""Extra inference outputs: what metrics and analyses need of a model beside its logits.

They are made once per model, only where a metric or an analysis needs them, and shared by all that
do. One job makes every kind that is wanted. Each kind has its own file, written batch by batch, so
peak memory does not grow with the number of images. A kind that a model can't give has a reason
instead of a file.

One module per kind or family of kinds computes (``embeddings``, ``augmented``, ``mc_dropout``,
``gradcam``, ``perturbations``, ``jacobian``, ``pixel_distances``); ``registry`` finds it by the
name of the kind. ``runner`` and ``selected_images`` are what they share, ``output_files`` keeps
their files between runs, ``manifest`` reads them.
"""
